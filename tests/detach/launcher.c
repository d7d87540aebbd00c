/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher.h"
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void launcher_init(launcher_t *launcher, int socket)
{
    *launcher = (launcher_t){.socket = socket};
}

static void write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            die("descriptor %d cannot be written: %s", fd, strerror(errno));
        }
        text += written;
        length -= (size_t)written;
    }
}

static bool is_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) > 0;
}

/* Reads one line, and waits for it. The caller frees it. */
static char *read_line(int fd)
{
    size_t room = 256, length = 0;
    char *line = malloc(room);
    for (;;) {
        if (length + 1 == room) {
            line = realloc(line, room *= 2);
        }
        const ssize_t got = line ? read(fd, line + length, 1) : 0;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            die("the launcher has gone");
        }
        if (line[length] == '\n') {
            line[length] = '\0';
            return line;
        }
        length++;
    }
}

static void take_address(link_t *link, const char *hex)
{
    link->address_length = strlen(hex) / 2;
    link->address = calloc(1, link->address_length + 1);
    for (size_t i = 0; link->address && i < link->address_length; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) {
            die("not an address: %s", hex);
        }
        link->address[i] = (char)byte;
    }
}

void launcher_exchange(launcher_t *launcher, struct rank *rank)
{
    size_t length;
    char *address = rank_address(rank, &length);
    char *text = calloc(1, 2 * length + 64);
    if (!text) {
        die("no memory");
    }
    int at = sprintf(text, "address %u ", rank->self);
    for (size_t i = 0; i < length; i++) {
        at += sprintf(text + at, "%02x", (unsigned char)address[i]);
    }
    text[at++] = '\n';
    write_all(launcher->socket, text, (size_t)at);
    free(text);
    free(address);

    char *line = read_line(launcher->socket), *rest = line;
    const char *word = strsep(&rest, " ");
    if (strcmp(word, "addresses") != 0) {
        die("the launcher says %s", word);
    }
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        word = strsep(&rest, " ");
        if (!word) {
            die("the launcher has too few addresses");
        }
        take_address(&rank->links[peer], word);
    }
    free(line);
}

void launcher_ask(launcher_t *launcher)
{
    char text[64];
    if (launcher->asked == launcher->answered) {
        const int length = sprintf(text, "ping %llu\n", (unsigned long long)++launcher->asked);
        write_all(launcher->socket, text, (size_t)length);
    }
}

bool launcher_listen(launcher_t *launcher)
{
    while (is_readable(launcher->socket)) {
        char expected[64], *line = read_line(launcher->socket);
        sprintf(expected, "pong %llu", (unsigned long long)launcher->answered + 1);
        if (strcmp(line, expected) != 0) {
            die("the launcher says %s, not %s", line, expected);
        }
        launcher->answered++;
        free(line);
    }
    return launcher->asked != launcher->answered;
}

static void take_byte(launcher_t *launcher, char byte)
{
    char expected[64];
    launcher->partial[launcher->length++] = byte;
    if (byte != '\n' && launcher->length < sizeof(launcher->partial)) {
        return;
    }
    launcher->partial[launcher->length - 1] = '\0';
    sprintf(expected, "in %llu", (unsigned long long)launcher->lines_read + 1);
    if (strcmp(launcher->partial, expected) != 0) {
        die("standard input has %s, not %s", launcher->partial, expected);
    }
    launcher->lines_read++;
    launcher->length = 0;
    const int length =
        sprintf(expected, "out %llu\n", (unsigned long long)++launcher->lines_written);
    write_all(STDOUT_FILENO, expected, (size_t)length);
}

void launcher_copy_lines(launcher_t *launcher)
{
    char bytes[256];
    while (is_readable(STDIN_FILENO)) {
        const ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
        if (got <= 0) {
            return; /* its end */
        }
        for (ssize_t i = 0; i < got; i++) {
            take_byte(launcher, bytes[i]);
        }
    }
}
