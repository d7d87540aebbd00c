/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAUNCHER_H
#define LAUNCHER_H

/* The connection to the launcher, a socket, and the program's standard streams: what a process
 * manager gives to an MPI process. They must outlive the host that the process is on.
 *
 *   process                          launcher
 *     address RANK HEX     ────────▶
 *                          ◀──────── addresses HEX HEX ...      when it has those of all
 *     ping N               ────────▶
 *                          ◀──────── pong N                     now and then, to the end */

#include <stdbool.h>
#include <stdint.h>

struct rank;

typedef struct {
    int socket;
    uint64_t asked, answered;
    uint64_t lines_read, lines_written; /* of standard input, to standard output */
    char partial[64];                   /* line of standard input */
    unsigned length;
} launcher_t;

void launcher_init(launcher_t *launcher, int socket);

/* Gives this process's address to the launcher, and takes those of all. */
void launcher_exchange(launcher_t *launcher, struct rank *rank);

/* Asks the launcher something, if it has answered the last question. */
void launcher_ask(launcher_t *launcher);

/* Reads what has come from the launcher. Returns whether it owes an answer. */
bool launcher_listen(launcher_t *launcher);

/* Reads standard input, lines "in N"; for each, one goes to standard output: "out N". */
void launcher_copy_lines(launcher_t *launcher);

#endif
