/* SPDX-License-Identifier: BSD-3-Clause */
/* As much of Hydra's header as its loop of events needs. */
#ifndef HYDRA_H_INCLUDED
#define HYDRA_H_INCLUDED

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HAVE_POLL 1
#define HAVE_ERROR_CHECKING 1
#define HYD_FD_UNSET (-1)
#define HYD_POLLIN 1
#define HYD_POLLOUT 2
#define HYD_POLLHUP 4
typedef unsigned short HYD_event_t;
typedef enum { HYD_SUCCESS, HYD_TIMED_OUT, HYD_INTERNAL_ERROR, HYD_SOCK_ERROR } HYD_status;

#define MPL_free free
#define MPL_strdup strdup
#define MPL_strerror strerror
#define HYDU_FUNC_ENTER()
#define HYDU_FUNC_EXIT()
#define HYDU_ASSERT(holds, status) assert(holds)
#define HYDU_set_signal(number, handler) (signal(number, handler) == SIG_ERR)
#define HYDU_MALLOC_OR_JUMP(p, type, size, status)                                                 \
    do {                                                                                           \
        (p) = (type)malloc((size) + 1);                                                            \
        assert(p);                                                                                 \
    } while (0)
#define HYDU_ERR_POP(status, ...)                                                                  \
    do {                                                                                           \
        if (status)                                                                                \
            goto fn_fail;                                                                          \
    } while (0)
#define HYDU_ERR_SETANDJUMP(status, error, ...)                                                    \
    do {                                                                                           \
        (status) = (error);                                                                        \
        goto fn_fail;                                                                              \
    } while (0)

#endif
