/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of communicators that the layer answers itself, or that need more than another handle.
 */
#include <algorithm>
#include <cstdint>
#include <map>
#include <mpi.h>
#include <set>

#include "fatal_errors.h"
#include "layer.h"
#include "recorder.h"
#include "requests.h"
#include "tell.h"

using namespace zc::migrate;

namespace {

/* The program's keyvals of communicators, by their number. MPI hands out the numbers. */
struct keyvals {
    std::mutex mutex;
    std::map<int, std::shared_ptr<const keyval>> all;

    static keyvals &instance()
    {
        static keyvals *const one = new keyvals;
        return *one;
    }
    std::shared_ptr<const keyval> find(int key)
    {
        const std::lock_guard guard(mutex);
        const auto at = all.find(key);
        return at == all.end() ? nullptr : at->second;
    }
};

/* The program's handlers of errors, by what MPI has for them. */
struct handlers {
    std::mutex mutex;
    std::map<MPI_Errhandler, MPI_Comm_errhandler_function *> all;
    std::set<MPI_Comm_errhandler_function *> fortran;

    static handlers &instance()
    {
        static handlers *const one = new handlers;
        return *one;
    }
    bool is_fortran(MPI_Comm_errhandler_function *function)
    {
        const std::lock_guard guard(mutex);
        return fortran.contains(function);
    }
    MPI_Comm_errhandler_function *find(MPI_Errhandler handler)
    {
        const std::lock_guard guard(mutex);
        const auto at = all.find(handler);
        return at == all.end() ? nullptr : at->second;
    }
};

/** MPI has an error on its communicator: the program's handler is told of the program's. */
void on_error(MPI_Comm *real, int *code, ...)
{
    MPI_Comm handle = layer::instance().handle_of_real(*real);
    const communicator *where = layer::find(handle);
    if (where && where->on_error && handlers::instance().is_fortran(where->on_error)) {
        MPI_Fint number = MPI_Comm_c2f(handle), problem = *code;
        reinterpret_cast<void (*)(MPI_Fint *, MPI_Fint *)>(where->on_error)(&number, &problem);
    } else if (where && where->on_error)
        where->on_error(&handle, code);
    else
        PMPI_Abort(*real, *code);
}

/** The same handler, which MPI keeps until it is freed as often as this was called. */
MPI_Errhandler hold(MPI_Errhandler handler)
{
    MPI_Errhandler before, held;
    PMPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    PMPI_Comm_get_errhandler(MPI_COMM_SELF, &held);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    PMPI_Errhandler_free(&before);
    return held;
}

int create_handler(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler)
{
    if (!layer::is_on())
        return PMPI_Comm_create_errhandler(function, handler);
    const int code = PMPI_Comm_create_errhandler(on_error, handler);
    const std::lock_guard guard(handlers::instance().mutex);
    if (code == MPI_SUCCESS)
        handlers::instance().all[*handler] = function;
    return code;
}

int set_handler(MPI_Comm comm, MPI_Errhandler handler)
{
    communicator *where = layer::find(comm);
    if (!where)
        return PMPI_Comm_set_errhandler(comm, handler);
    const MPI_Comm real = where->real.load();
    const int code = real == MPI_COMM_NULL
                         ? int{MPI_SUCCESS}
                         : PMPI_Comm_set_errhandler(real, fatal_errors::real(handler));
    if (code != MPI_SUCCESS)
        return code;
    where->awaited_handler = real == MPI_COMM_NULL ? hold(handler) : handler;
    where->on_error = handlers::instance().find(handler);
    /* What belongs to no communicator is an error on MPI_COMM_WORLD, that of this process. */
    return comm == MPI_COMM_WORLD
               ? PMPI_Comm_set_errhandler(MPI_COMM_WORLD, fatal_errors::real(handler))
               : int{MPI_SUCCESS};
}

int get_handler(MPI_Comm comm, MPI_Errhandler *handler)
{
    const communicator *where = layer::find(comm);
    if (!where || where->real.load() != MPI_COMM_NULL)
        return fatal_errors::get(layer::real(comm), handler);
    *handler = where->awaited_handler == MPI_ERRHANDLER_NULL ? fatal_errors::hold_fatal()
                                                             : hold(where->awaited_handler);
    return MPI_SUCCESS;
}

int create_key(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *remove, int *key,
               void *extra)
{
    if (!layer::is_on())
        return PMPI_Comm_create_keyval(copy, remove, key, extra);
    const int code =
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, nullptr);
    if (code != MPI_SUCCESS)
        return code;
    const std::lock_guard guard(keyvals::instance().mutex);
    keyvals::instance().all[*key] =
        std::make_shared<const keyval>(keyval{.copy = copy, .remove = remove, .extra = extra});
    return code;
}

int free_key(int *key)
{
    if (layer::is_on()) {
        const std::lock_guard guard(keyvals::instance().mutex);
        keyvals::instance().all.erase(*key);
    }
    return PMPI_Comm_free_keyval(key);
}

/** Which communicator of MPI has the predefined attributes of @comm: all do, or this one alone. */
MPI_Comm predefined_of(MPI_Comm comm)
{
    return layer::find(comm) ? MPI_COMM_WORLD : comm;
}

auto attribute_of(communicator &where, const std::shared_ptr<const keyval> &kind)
{
    return std::ranges::find_if(where.attributes,
                                [&](const attribute &each) { return each.kind == kind; });
}

int delete_attribute(MPI_Comm comm, int key)
{
    communicator *where = layer::find(comm);
    const auto kind = where ? keyvals::instance().find(key) : nullptr;
    if (!kind)
        return PMPI_Comm_delete_attr(predefined_of(comm), key);
    auto at = attribute_of(*where, kind);
    if (at == where->attributes.end())
        return MPI_SUCCESS;
    if (const int code = kind->call_remove(comm, key, at->value); code != MPI_SUCCESS)
        return code;
    at = attribute_of(*where, kind);
    if (at != where->attributes.end())
        where->attributes.erase(at);
    return MPI_SUCCESS;
}

int set_attribute(MPI_Comm comm, int key, void *value)
{
    communicator *where = layer::find(comm);
    const auto kind = where ? keyvals::instance().find(key) : nullptr;
    if (!kind)
        return PMPI_Comm_set_attr(predefined_of(comm), key, value);
    if (attribute_of(*where, kind) != where->attributes.end())
        if (const int code = delete_attribute(comm, key); code != MPI_SUCCESS)
            return code;
    where->attributes.push_back({key, kind, value, layer::is_computing()});
    return MPI_SUCCESS;
}

int get_attribute(MPI_Comm comm, int key, void *value, int *flag)
{
    communicator *where = layer::find(comm);
    const auto kind = where ? keyvals::instance().find(key) : nullptr;
    if (!kind)
        return PMPI_Comm_get_attr(predefined_of(comm), key, value, flag);
    const auto at = attribute_of(*where, kind);
    *flag = at != where->attributes.end();
    if (*flag)
        *static_cast<void **>(value) = at->value;
    return MPI_SUCCESS;
}

/** @with: PMPI_Comm_free or PMPI_Comm_disconnect. */
template <typename With>
int give_up(MPI_Comm *comm, With with)
{
    communicator *where = layer::find(*comm);
    if (!where || *comm == MPI_COMM_WORLD || *comm == MPI_COMM_SELF)
        return with(comm);
    if (const int code = layer::instance().delete_attributes(*where); code != MPI_SUCCESS)
        return code;
    MPI_Comm real = where->real.load();
    const int code = real == MPI_COMM_NULL ? int{MPI_SUCCESS} : with(&real);
    if (code != MPI_SUCCESS)
        return code;
    layer::instance().free(*where);
    *comm = MPI_COMM_NULL;
    return code;
}

template <typename Start>
int start_copy(MPI_Comm comm, MPI_Comm *fresh, MPI_Request *request, const char *name, Start start)
{
    communicator *where = layer::find(comm);
    if (!where)
        return start(comm, fresh, request);
    const auto begin = [&] {
        auto room = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
        MPI_Request real = MPI_REQUEST_NULL;
        if (const int code = start(where->real.load(), room.get(), &real); code != MPI_SUCCESS)
            return code;
        *fresh = layer::instance().adopt_copy(comm);
        *request = requests::instance().adopt(real, name);
        if (request_record *one = requests::instance().find(*request)) {
            one->with_more().fresh = std::move(room);
            one->with_more().owner = *fresh;
        } else {
            layer::find(*fresh)->real = *room;
        }
        return int{MPI_SUCCESS};
    };
    const int code = recorder::call(
        name, [&] { return std::vector{value_of(comm)}; }, begin,
        [&](recorder::visitor &with) {
            with.communicator_(fresh);
            with.request(request, name, request_record::kind::other, MPI_COMM_NULL, MPI_PROC_NULL,
                         0);
        });
    if (code != MPI_SUCCESS)
        return code;
    communicator &copy = *layer::find(*fresh);
    copy.on_error = where->on_error;
    copy.awaited_handler = where->awaited_handler;
    return layer::instance().copy_attributes(*where, copy);
}

} // namespace

namespace zc::migrate {

void set_convention(int key, const keyval &how)
{
    const std::lock_guard guard(keyvals::instance().mutex);
    const auto at = keyvals::instance().all.find(key);
    if (at == keyvals::instance().all.end())
        return;
    keyval changed = *at->second;
    changed.called = how.called;
    changed.copy_by = how.copy_by;
    changed.remove_by = how.remove_by;
    at->second = std::make_shared<const keyval>(changed);
}

bool is_attribute(MPI_Comm comm, int key)
{
    return layer::is_on() && layer::find(comm) && keyvals::instance().find(key);
}

void note_fortran_handler(MPI_Comm_errhandler_function *function)
{
    const std::lock_guard guard(handlers::instance().mutex);
    handlers::instance().fortran.insert(function);
}

} // namespace zc::migrate

extern "C" {
#pragma GCC visibility push(default)

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    const communicator *where = layer::find(comm);
    if (!where)
        return PMPI_Comm_rank(comm, rank);
    *rank = where->rank;
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    const communicator *where = layer::find(comm);
    if (!where)
        return PMPI_Comm_size(comm, size);
    *size = where->size();
    return MPI_SUCCESS;
}

int MPI_Comm_remote_size(MPI_Comm comm, int *size)
{
    const communicator *where = layer::find(comm);
    if (!where || !where->inter)
        return PMPI_Comm_remote_size(layer::real(comm), size);
    *size = static_cast<int>(where->remote->size());
    return MPI_SUCCESS;
}

int MPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
    const communicator *where = layer::find(comm);
    if (!where)
        return PMPI_Comm_test_inter(comm, flag);
    *flag = where->inter;
    return MPI_SUCCESS;
}

int MPI_Comm_compare(MPI_Comm first, MPI_Comm second, int *result)
{
    const communicator *one = layer::find(first), *other = layer::find(second);
    if (!one || !other)
        return PMPI_Comm_compare(layer::real(first), layer::real(second), result);
    const auto similar = [](const shared_members &a, const shared_members &b) {
        return std::ranges::is_permutation(*a, *b);
    };
    if (one == other)
        *result = MPI_IDENT;
    else if (one->inter != other->inter)
        *result = MPI_UNEQUAL;
    else if (*one->local == *other->local && (!one->inter || *one->remote == *other->remote))
        *result = MPI_CONGRUENT;
    else if (similar(one->local, other->local) &&
             (!one->inter || similar(one->remote, other->remote)))
        *result = MPI_SIMILAR;
    else
        *result = MPI_UNEQUAL;
    return MPI_SUCCESS;
}

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    const communicator *where = layer::find(comm);
    if (!where)
        return PMPI_Comm_group(comm, group);
    *group = layer::instance().make_group(*where->local);
    return MPI_SUCCESS;
}

int MPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
    const communicator *where = layer::find(comm);
    if (!where || !where->inter)
        return PMPI_Comm_remote_group(layer::real(comm), group);
    *group = layer::instance().make_group(*where->remote);
    return MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    return give_up(comm, PMPI_Comm_free);
}

int MPI_Comm_disconnect(MPI_Comm *comm)
{
    return give_up(comm, PMPI_Comm_disconnect);
}

int MPI_Comm_get_parent(MPI_Comm *parent)
{
    /* A rank was spawned by libzcm, which is none of the program's business. */
    if (!layer::is_on())
        return PMPI_Comm_get_parent(parent);
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *fresh, MPI_Request *request)
{
    return start_copy(comm, fresh, request, "MPI_Comm_idup", PMPI_Comm_idup);
}

#if MPI_VERSION >= 4
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *fresh, MPI_Request *request)
{
    return start_copy(comm, fresh, request, "MPI_Comm_idup_with_info",
                      [info](MPI_Comm of, MPI_Comm *made, MPI_Request *started) {
                          return PMPI_Comm_idup_with_info(of, info, made, started);
                      });
}
#endif

/* ---- attributes ---- */

int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *remove,
                           int *key, void *extra)
{
    return create_key(copy, remove, key, extra);
}

int MPI_Keyval_create(MPI_Copy_function *copy, MPI_Delete_function *remove, int *key, void *extra)
{
    return create_key(copy, remove, key, extra);
}

int MPI_Comm_free_keyval(int *key)
{
    return free_key(key);
}

int MPI_Keyval_free(int *key)
{
    return free_key(key);
}

int MPI_Comm_set_attr(MPI_Comm comm, int key, void *value)
{
    return set_attribute(comm, key, value);
}

int MPI_Attr_put(MPI_Comm comm, int key, void *value)
{
    return set_attribute(comm, key, value);
}

int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag)
{
    return get_attribute(comm, key, value, flag);
}

int MPI_Attr_get(MPI_Comm comm, int key, void *value, int *flag)
{
    return get_attribute(comm, key, value, flag);
}

int MPI_Comm_delete_attr(MPI_Comm comm, int key)
{
    return delete_attribute(comm, key);
}

int MPI_Attr_delete(MPI_Comm comm, int key)
{
    return delete_attribute(comm, key);
}

/* ---- error handlers ---- */

int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler)
{
    return create_handler(function, handler);
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    return set_handler(comm, handler);
}

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
    return get_handler(comm, handler);
}

#ifndef OPEN_MPI
/* Open MPI 4 has these no more. */
int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler)
{
    return create_handler(function, handler);
}

int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler)
{
    return set_handler(comm, handler);
}

int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *handler)
{
    return get_handler(comm, handler);
}
#else
/* What Fortran and MPI_Fint need: MPI would look into the handle. */
MPI_Fint MPI_Comm_c2f(MPI_Comm comm)
{
    return layer::find(comm) && comm_handle::is_virtual(comm)
               ? static_cast<MPI_Fint>(comm_handle::number(comm) | 1u << 30)
               : PMPI_Comm_c2f(comm);
}

MPI_Comm MPI_Comm_f2c(MPI_Fint comm)
{
    return layer::is_on() && comm >> 30 == 1
               ? comm_handle::make(static_cast<std::uint32_t>(comm) & ~(1u << 30))
               : PMPI_Comm_f2c(comm);
}

MPI_Fint MPI_Group_c2f(MPI_Group group)
{
    return layer::find_group(group) ? static_cast<MPI_Fint>(group_handle::number(group) | 1u << 30)
                                    : PMPI_Group_c2f(group);
}

MPI_Group MPI_Group_f2c(MPI_Fint group)
{
    return layer::is_on() && group >> 30 == 1
               ? group_handle::make(static_cast<std::uint32_t>(group) & ~(1u << 30))
               : PMPI_Group_f2c(group);
}

MPI_Fint MPI_Request_c2f(MPI_Request request)
{
    return layer::is_on() && requests::instance().find(request)
               ? static_cast<MPI_Fint>(request_handle::number(request) | 1u << 30)
               : PMPI_Request_c2f(request);
}

MPI_Request MPI_Request_f2c(MPI_Fint request)
{
    return layer::is_on() && request >> 30 == 1
               ? request_handle::make(static_cast<std::uint32_t>(request) & ~(1u << 30))
               : PMPI_Request_f2c(request);
}
#endif

#pragma GCC visibility pop
} // extern "C"
