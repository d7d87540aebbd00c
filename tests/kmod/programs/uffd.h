/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_UFFD_H
#define ZC_TESTS_UFFD_H

#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stddef.h>

/** A userfaultfd with @features, not blocking. Return: descriptor, or -1 with errno. */
int uffd_open(unsigned long long features);

/** Return: 0, or -1 with errno. */
int uffd_register(int fd, void *at, size_t len, unsigned long long mode);
int uffd_unregister(int fd, void *at, size_t len);
int uffd_protect(int fd, void *at, size_t len, bool protect);

#endif
