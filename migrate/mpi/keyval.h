/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <mpi.h>

namespace zc::migrate {

/** A keyval that the program has made for communicators. */
struct keyval {
    /** How its functions are called: those of Fortran take all by reference. fortran_1: as in MPI
     * 1, where values are of type INTEGER. mpich: by the functions that MPICH's binding names. */
    enum class convention { c, fortran, fortran_1, mpich };

    MPI_Comm_copy_attr_function *copy = nullptr;
    MPI_Comm_delete_attr_function *remove = nullptr;
    void *extra = nullptr;
    convention called = convention::c;
    void *copy_by = nullptr, *remove_by = nullptr; /* MPICH's */

    int call_copy(MPI_Comm from, int key, void *value, void **copied, int *keeps) const;
    int call_remove(MPI_Comm from, int key, void *value) const;
};

/** Functions of the keyval @key are called as @how says; nothing if it is not the program's. */
void set_convention(int key, const keyval &how);
/** The program has made the keyval @key, and @comm is libzcm's. */
bool is_attribute(MPI_Comm comm, int key);
/** The function is of Fortran: it is given a handle of Fortran. */
void note_fortran_handler(MPI_Comm_errhandler_function *function);

} // namespace zc::migrate
