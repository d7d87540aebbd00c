/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_RUNTIME_DIRECTORY_H_INCLUDED
#define ZC_BASE_RUNTIME_DIRECTORY_H_INCLUDED

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Where the processes of a user on one node leave what others of his look for: sockets of jobs and
 * of the agent, profiles of ranks. $XDG_RUNTIME_DIR/zcm, if that variable names a directory of ours
 * that others cannot write to; else /tmp/zcm-UID. The variable comes along with a job to nodes
 * where there is no such directory, and the directory goes with the user's last login on a node.
 */

/** What became of $XDG_RUNTIME_DIR. */
enum zcm_runtime {
    ZCM_RUNTIME_USED,
    ZCM_RUNTIME_UNSET,
    ZCM_RUNTIME_RELATIVE,
    ZCM_RUNTIME_MISSING,
    ZCM_RUNTIME_NO_DIRECTORY,
    ZCM_RUNTIME_OF_ANOTHER,
    ZCM_RUNTIME_OPEN_TO_OTHERS,
    ZCM_RUNTIME_NOT_WRITABLE,
};

enum { ZCM_RUNTIME_PLACES = 2 };

/** The place of this process, without making it. @path is empty if it does not fit into @size. */
enum zcm_runtime zcm_runtime_directory(char *path, size_t size);
/** In words, as of a directory: "it does not exist". */
const char *zcm_runtime_text(enum zcm_runtime what);
/**
 * The @n-th place, from 0, where processes that were started with another environment may have put
 * theirs: first our own, then, if ours is one of the two usual ones (/run/user/UID/zcm and
 * /tmp/zcm-UID), the other. Return: 0, or -1 if there is none.
 */
int zcm_runtime_place(int n, char *path, size_t size);

#ifdef __cplusplus
}
#endif

#endif
