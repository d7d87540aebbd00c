/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Attributes and handlers of errors of programs in Fortran. Their bindings hand functions of
 * Fortran to MPI past its interface for C: MPICH's by functions MPII_..., Open MPI's in its own
 * structures. So libzcm has these functions, too, and goes on to those of MPI where migration is
 * off.
 */
#include <cstdint>
#include <dlfcn.h>
#include <mpi.h>

#include "keyval.h"
#include "layer.h"
#include "zcm/zcm.h"

namespace zc::migrate {

namespace {

/* Values and extra state are of @Value; all goes by reference. */
template <typename Value>
using copy_fn = void(MPI_Fint *, MPI_Fint *, Value *, Value *, Value *, MPI_Fint *, MPI_Fint *);
template <typename Value>
using remove_fn = void(MPI_Fint *, MPI_Fint *, Value *, Value *, MPI_Fint *);

/** By way of the type that stands for all functions. */
template <typename Function, typename Known>
Function *function_of(Known *known)
{
    return reinterpret_cast<Function *>(reinterpret_cast<void (*)()>(known));
}

void *pointer_of(std::intptr_t value)
{
    return reinterpret_cast<void *>(value);
}

template <typename Value>
int copy_in_fortran(const keyval &of, MPI_Comm from, int key, void *value, void **copied,
                    int *keeps)
{
    MPI_Fint comm = MPI_Comm_c2f(from), number = key, flag = 0, code = MPI_SUCCESS;
    auto state = static_cast<Value>(reinterpret_cast<std::intptr_t>(of.extra));
    auto in = static_cast<Value>(reinterpret_cast<std::intptr_t>(value));
    Value out = 0;
    function_of<copy_fn<Value>>(of.copy)(&comm, &number, &state, &in, &out, &flag, &code);
    *keeps = flag != 0;
    *copied = pointer_of(out);
    return code;
}

template <typename Value>
int remove_in_fortran(const keyval &of, MPI_Comm from, int key, void *value)
{
    MPI_Fint comm = MPI_Comm_c2f(from), number = key, code = MPI_SUCCESS;
    auto state = static_cast<Value>(reinterpret_cast<std::intptr_t>(of.extra));
    auto is = static_cast<Value>(reinterpret_cast<std::intptr_t>(value));
    function_of<remove_fn<Value>>(of.remove)(&comm, &number, &is, &state, &code);
    return code;
}

#ifndef OPEN_MPI
/* What MPICH's binding names as the functions that call those of the program. */
using copy_by_fn = int(MPI_Comm_copy_attr_function *, int, int, void *, int, void *, void **,
                       int *);
using remove_by_fn = int(MPI_Comm_delete_attr_function *, int, int, int, void *, void *);
constexpr int kAddress = 1; /* MPIR_ATTR_AINT: the value is an address or a number */
#endif

/** The function that this one stands before. */
template <typename Function>
Function *next(const char *name)
{
    return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

} // namespace

int keyval::call_copy(MPI_Comm from, int key, void *value, void **copied, int *keeps) const
{
    if (!copy)
        return MPI_SUCCESS;
    switch (called) {
    case convention::fortran:
        return copy_in_fortran<MPI_Aint>(*this, from, key, value, copied, keeps);
    case convention::fortran_1:
        return copy_in_fortran<MPI_Fint>(*this, from, key, value, copied, keeps);
#ifndef OPEN_MPI
    case convention::mpich:
        return reinterpret_cast<copy_by_fn *>(copy_by)(copy, from, key, extra, kAddress, value,
                                                       copied, keeps);
#endif
    default:
        return copy(from, key, extra, value, copied, keeps);
    }
}

int keyval::call_remove(MPI_Comm from, int key, void *value) const
{
    if (!remove)
        return MPI_SUCCESS;
    switch (called) {
    case convention::fortran:
        return remove_in_fortran<MPI_Aint>(*this, from, key, value);
    case convention::fortran_1:
        return remove_in_fortran<MPI_Fint>(*this, from, key, value);
#ifndef OPEN_MPI
    case convention::mpich:
        return reinterpret_cast<remove_by_fn *>(remove_by)(remove, from, key, kAddress, value,
                                                           extra);
#endif
    default:
        return remove(from, key, value, extra);
    }
}

} // namespace zc::migrate

using namespace zc::migrate;

extern "C" {

#ifndef OPEN_MPI

ZCM_PUBLIC int MPII_Comm_set_attr(MPI_Comm comm, int key, void *value, int type)
{
    static auto *const theirs = next<decltype(MPII_Comm_set_attr)>("MPII_Comm_set_attr");
    return is_attribute(comm, key) ? MPI_Comm_set_attr(comm, key, value)
                                   : theirs(layer::real(comm), key, value, type);
}

ZCM_PUBLIC int MPII_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag, int type)
{
    static auto *const theirs = next<decltype(MPII_Comm_get_attr)>("MPII_Comm_get_attr");
    return is_attribute(comm, key)
               ? MPI_Comm_get_attr(comm, key, value, flag)
               : theirs(layer::find(comm) ? MPI_COMM_WORLD : comm, key, value, flag, type);
}

ZCM_PUBLIC void MPII_Keyval_set_proxy(int key, void *copy_by, void *remove_by)
{
    static auto *const theirs = next<decltype(MPII_Keyval_set_proxy)>("MPII_Keyval_set_proxy");
    keyval how;
    how.called = keyval::convention::mpich;
    how.copy_by = copy_by;
    how.remove_by = remove_by;
    if (layer::is_on())
        set_convention(key, how);
    else
        theirs(key, copy_by, remove_by);
}

#else

using function = void();

/* Names: of mpif.h and use mpi, and what mpi_f08 calls. */
#define ZCM_FORTRAN(name, parameters)                                                              \
    ZCM_PUBLIC void ompi_##name##_f parameters;                                                    \
    ZCM_PUBLIC void mpi_##name##_ parameters __attribute__((alias("ompi_" #name "_f")));           \
    ZCM_PUBLIC void ompi_##name##_f parameters

#define ZCM_NEXT(name) next<decltype(ompi_##name##_f)>("ompi_" #name "_f")

static void make_key(function *copy, function *remove, MPI_Fint *key, std::intptr_t extra,
                     MPI_Fint *code, keyval::convention called)
{
    keyval how;
    how.called = called;
    int number = MPI_KEYVAL_INVALID;
    *code = MPI_Comm_create_keyval(reinterpret_cast<MPI_Comm_copy_attr_function *>(copy),
                                   reinterpret_cast<MPI_Comm_delete_attr_function *>(remove),
                                   &number, reinterpret_cast<void *>(extra));
    if (*code == MPI_SUCCESS)
        set_convention(number, how);
    *key = number;
}

ZCM_FORTRAN(comm_create_keyval,
            (function * copy, function *remove, MPI_Fint *key, MPI_Aint *extra, MPI_Fint *code))
{
    if (layer::is_on())
        make_key(copy, remove, key, *extra, code, keyval::convention::fortran);
    else
        ZCM_NEXT(comm_create_keyval)(copy, remove, key, extra, code);
}

ZCM_FORTRAN(keyval_create,
            (function * copy, function *remove, MPI_Fint *key, MPI_Fint *extra, MPI_Fint *code))
{
    if (layer::is_on())
        make_key(copy, remove, key, *extra, code, keyval::convention::fortran_1);
    else
        ZCM_NEXT(keyval_create)(copy, remove, key, extra, code);
}

/* Attributes of MPI itself are those of the process's own world. */
static MPI_Fint own_world()
{
    return PMPI_Comm_c2f(MPI_COMM_WORLD);
}

ZCM_FORTRAN(comm_set_attr, (MPI_Fint * comm, MPI_Fint *key, MPI_Aint *value, MPI_Fint *code))
{
    MPI_Comm of = MPI_Comm_f2c(*comm);
    MPI_Fint world = own_world();
    if (is_attribute(of, *key))
        *code = MPI_Comm_set_attr(of, *key, reinterpret_cast<void *>(*value));
    else
        ZCM_NEXT(comm_set_attr)(layer::find(of) ? &world : comm, key, value, code);
}

ZCM_FORTRAN(attr_put, (MPI_Fint * comm, MPI_Fint *key, MPI_Fint *value, MPI_Fint *code))
{
    MPI_Comm of = MPI_Comm_f2c(*comm);
    MPI_Fint world = own_world();
    if (is_attribute(of, *key))
        *code = MPI_Comm_set_attr(of, *key,
                                  reinterpret_cast<void *>(static_cast<std::intptr_t>(*value)));
    else
        ZCM_NEXT(attr_put)(layer::find(of) ? &world : comm, key, value, code);
}

ZCM_FORTRAN(comm_get_attr,
            (MPI_Fint * comm, MPI_Fint *key, MPI_Aint *value, MPI_Fint *flag, MPI_Fint *code))
{
    MPI_Comm of = MPI_Comm_f2c(*comm);
    MPI_Fint world = own_world();
    if (is_attribute(of, *key))
        *code = MPI_Comm_get_attr(of, *key, value, flag);
    else
        ZCM_NEXT(comm_get_attr)(layer::find(of) ? &world : comm, key, value, flag, code);
}

/* By this name mpi_f08 calls it, and by none of the other two. */
ZCM_PUBLIC void pmpi_comm_get_attr_(MPI_Fint *comm, MPI_Fint *key, MPI_Aint *value, MPI_Fint *flag,
                                    MPI_Fint *code) __attribute__((alias("ompi_comm_get_attr_f")));

ZCM_FORTRAN(attr_get,
            (MPI_Fint * comm, MPI_Fint *key, MPI_Fint *value, MPI_Fint *flag, MPI_Fint *code))
{
    MPI_Comm of = MPI_Comm_f2c(*comm);
    MPI_Fint world = own_world();
    if (!is_attribute(of, *key)) {
        ZCM_NEXT(attr_get)(layer::find(of) ? &world : comm, key, value, flag, code);
        return;
    }
    MPI_Aint is = 0;
    *code = MPI_Comm_get_attr(of, *key, &is, flag);
    if (*flag)
        *value = static_cast<MPI_Fint>(is);
}

ZCM_FORTRAN(comm_create_errhandler, (function * handler, MPI_Fint *made, MPI_Fint *code))
{
    if (!layer::is_on()) {
        ZCM_NEXT(comm_create_errhandler)(handler, made, code);
        return;
    }
    auto *known = reinterpret_cast<MPI_Comm_errhandler_function *>(handler);
    note_fortran_handler(known);
    MPI_Errhandler one = MPI_ERRHANDLER_NULL;
    *code = MPI_Comm_create_errhandler(known, &one);
    if (*code == MPI_SUCCESS)
        *made = PMPI_Errhandler_c2f(one);
}

ZCM_FORTRAN(errhandler_create, (function * handler, MPI_Fint *made, MPI_Fint *code))
{
    if (layer::is_on())
        ompi_comm_create_errhandler_f(handler, made, code);
    else
        ZCM_NEXT(errhandler_create)(handler, made, code);
}

#undef ZCM_FORTRAN
#undef ZCM_NEXT

#endif

} // extern "C"
