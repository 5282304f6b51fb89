/* serialize.h: a program as bytes, and back. Owns the format; knows no Python. Reading trusts nothing: bytes that were
 * changed, cut short or made up give a message and no program.
 *
 * Note [Format]. Numbers are little-endian, whatever the machine; a double is its 64 bits.
 *   8 bytes       "\x89pygrad\n"
 *   uint32        the version of what follows, PG_FORMAT_VERSION
 *   uint32        how many names of ops there are
 *   uint64        length of the whole, in bytes
 *   uint64        FNV-1a of the whole, these 8 bytes left out
 *   uint64        how many programs: each body once, after those that it uses, and last the program itself
 *   24 bytes      a name of an op, filled up with zeros; once for each name, in the order of first use
 * and for each program
 *   uint64 x 7    inputs, instructions, constants, operands in lists, outputs, guards, regions: how many
 *   uint32 x 4    an instruction: the number of its name, and `in` of pg_instruction
 *   uint64        a constant
 *   uint32        an operand
 *   uint32        an output
 *   uint32 uint64 a guard: its value, and what is expected
 *   32 bytes      a region: uint32 x 2 its bodies, by number, PG_NONE for none; uint64 its steps; uint32 x 3 carries,
 *                 shared, arrays; uint32 1 for backwards, 2 for saves, added. Of a condition the bodies, what is
 *                 shared, and zeros
 * Ops are named, so that a program outlives the order of the table; a name that became an alias is still read. Lists of
 * operands, regions and arrays do not overlap: what is read is never longer than the bytes were. */
#ifndef PG_SERIALIZE_H
#define PG_SERIALIZE_H

#include "program.h"

enum { PG_FORMAT_VERSION = 2 };

/* The bytes, to be freed, and how many; NULL where memory runs out, or where it calls a function: pg_program_callee. */
unsigned char *pg_program_to_bytes(const pg_program *program, size_t *size);

/* The program; or NULL with what is wrong in `message`, which is empty where memory ran out. */
pg_program *pg_program_from_bytes(const unsigned char *bytes, size_t size, char *message, size_t room);

#endif
