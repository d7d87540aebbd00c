/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the place of an HDF5 of another version, which a program is linked with: its names come before
 * those of any other library of the process. Whatever calls it ends the process, as HDF5 does when
 * versions do not fit.
 */
#include <stdio.h>
#include <stdlib.h>

#define WRONG(name)                                                                                \
    __attribute__((visibility("default"))) int name(void)                                          \
    {                                                                                              \
        fprintf(stderr, "called the program's HDF5: " #name "\n");                                 \
        abort();                                                                                   \
    }
WRONG(H5open)
WRONG(H5check_version)
WRONG(H5Acreate2)
WRONG(H5Dcreate2)
WRONG(H5Dwrite)
WRONG(H5Dread)
WRONG(H5Eset_auto2)
WRONG(H5Fcreate)
WRONG(H5Fopen)
WRONG(H5Pcreate)
WRONG(H5Screate)
WRONG(H5Tcopy)

/* Identifiers of nothing. */
__attribute__((visibility("default"))) long H5T_NATIVE_DOUBLE_g = 4711, H5T_IEEE_F64LE_g = 4711,
                                            H5P_CLS_FILE_ACCESS_ID_g = 4711;

__attribute__((constructor)) static void tell(void)
{
    const char *path = getenv("ANOTHER_HDF5_IS_THERE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file)
        fclose(file);
}
