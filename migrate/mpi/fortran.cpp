/* SPDX-License-Identifier: BSD-3-Clause */

/* What the Fortran module zcm (fortran/zcm.f90) calls where C has handles. */
#include <mpi.h>

#include "zcm/zcm.h"

namespace {

using world_fn = void(MPI_Fint, void *);

world_fn *release_fn = nullptr, *rebuild_fn = nullptr;

void release(MPI_Comm world, void *arg)
{
    release_fn(MPI_Comm_c2f(world), arg);
}

void rebuild(MPI_Comm world, void *arg)
{
    rebuild_fn(MPI_Comm_c2f(world), arg);
}

/* In the order of the enumeration in zcm.f90. */
enum family { kInteger, kReal, kComplex, kLogical, kCharacter };

MPI_Datatype type_of(int family, int bytes)
{
    switch (family) {
    case kInteger:
        return bytes == 1   ? MPI_INT8_T
               : bytes == 2 ? MPI_INT16_T
               : bytes == 4 ? MPI_INT32_T
                            : MPI_INT64_T;
    case kReal:
        return bytes == 4 ? MPI_FLOAT : MPI_DOUBLE;
    case kComplex:
        return bytes == 8 ? MPI_C_FLOAT_COMPLEX : MPI_C_DOUBLE_COMPLEX;
    case kLogical:
        return bytes == 1 ? MPI_C_BOOL : bytes == 4 ? MPI_INT32_T : MPI_INT64_T;
    case kCharacter:
        return MPI_CHAR;
    default:
        return MPI_DATATYPE_NULL;
    }
}

} // namespace

extern "C" {

ZCM_PUBLIC int zcm_f_init() noexcept
{
    return zcm_init(nullptr, nullptr);
}

ZCM_PUBLIC MPI_Fint zcm_f_world() noexcept
{
    return MPI_Comm_c2f(zcm_world());
}

ZCM_PUBLIC MPI_Fint zcm_f_type(int family, int bytes) noexcept
{
    return MPI_Type_c2f(type_of(family, bytes));
}

ZCM_PUBLIC int zcm_f_register(const char *name, void *address, size_t count, MPI_Fint type) noexcept
{
    return zcm_register(name, address, count, MPI_Type_f2c(type));
}

ZCM_PUBLIC int zcm_f_on_rebuild(world_fn *before, world_fn *after, void *arg) noexcept
{
    release_fn = before;
    rebuild_fn = after;
    return zcm_on_rebuild(before ? release : nullptr, after ? rebuild : nullptr, arg);
}

} // extern "C"
