/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of a process of another world that has died. */
#ifndef ZC_LOST_H
#define ZC_LOST_H

#include "check.h"
#include <string.h>

/** expect_failed - @error, of @what, says that a process has failed */
static inline void expect_failed(int error, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int error_class, length;
    MPI_Error_class(error, &error_class);
    MPI_Error_string(error, text, &length);
    CHECK(error_class == MPIX_ERR_PROC_FAILED, "%s: error %d, class %d: %s", what, error,
          error_class, text);
    CHECK(strstr(text, "Process failed"), "%s: %s", what, text);
    printf("# %s: %s\n", what, text);
}

#endif
