/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_PROCFS_H
#define ZC_TESTS_PROCFS_H

/* Small files of /proc and /sys. */

#include <stdbool.h>
#include <stddef.h>

/** Return: bytes read, 0-terminated in @text; -errno. */
long file_read(const char *path, char *text, size_t room);

/** Return: 0, or -errno. */
int file_write(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The number in @path, or behind the word @key in it; -1 if there is none. */
long file_number(const char *path, const char *key);

/** A field of /proc/self/smaps, in KiB, of the mappings that lie in the range. */
long smaps_kib(const char *field, const void *at, size_t len);

/** How many mappings the range has. */
int mappings_of(const void *at, size_t len);

/** This process's resident pages; anonymous ones only. */
long rss_pages(void);
long rss_anon_pages(void);

/** Pages that wait on some processor for their LRU list are put there. */
void drain_lru(void);

bool is_root(void);

#endif
