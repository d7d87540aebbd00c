/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <initializer_list>
#include <mpi.h>

namespace zc::migrate {

/*
 * Handles that a movable program has of communicators, groups and requests. They mean the same in
 * every process of a rank, so that a rank may keep them in registered memory. A call that is not
 * wrapped fails with them:
 *
 *     MPICH     int      | 0 0 | kind of object |        number         |   an invalid handle, as
 *                         31 30 29           26  25                   0     MPI_COMM_NULL is one
 *     Open MPI  pointer  | 0x5a43, 0x5a47 or 0x5a52 | number |   to where no process has memory
 *                         63                      48 31     0
 *
 * MPICH answers with MPI_ERR_COMM, MPI_ERR_GROUP or MPI_ERR_REQUEST; Open MPI, which follows the
 * pointer, ends by a segmentation fault. An object of our own there would have to look like one of
 * Open MPI's whose layout changes between versions.
 */
template <typename Handle, std::uint32_t Kind>
struct handle_kind {
    using type = Handle;

#ifdef OPEN_MPI
    static bool is_virtual(Handle handle) noexcept
    {
        return reinterpret_cast<std::uintptr_t>(handle) >> 48 == Kind;
    }
    static std::uint32_t number(Handle handle) noexcept
    {
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle));
    }
    static Handle make(std::uint32_t number) noexcept
    {
        return reinterpret_cast<Handle>(std::uintptr_t{Kind} << 48 | number);
    }
#else
    static bool is_virtual(Handle handle) noexcept
    {
        return static_cast<std::uint32_t>(handle) >> kNumberBits == Kind && number(handle) != 0;
    }
    static std::uint32_t number(Handle handle) noexcept
    {
        return static_cast<std::uint32_t>(handle) & ((1u << kNumberBits) - 1);
    }
    static Handle make(std::uint32_t number) noexcept
    {
        return static_cast<Handle>(Kind << kNumberBits | number);
    }

  private:
    static constexpr unsigned kNumberBits = 26;
#endif
};

#ifdef OPEN_MPI
using comm_handle = handle_kind<MPI_Comm, 0x5a43>;
using group_handle = handle_kind<MPI_Group, 0x5a47>;
using request_handle = handle_kind<MPI_Request, 0x5a52>;
#else
using comm_handle = handle_kind<MPI_Comm, (std::uint32_t{MPI_COMM_NULL} >> 26)>;
using group_handle = handle_kind<MPI_Group, (std::uint32_t{MPI_GROUP_NULL} >> 26)>;
using request_handle = handle_kind<MPI_Request, (std::uint32_t{MPI_REQUEST_NULL} >> 26)>;
#endif

#ifdef OPEN_MPI
/** Handles that every program has: addresses, which are others in each process. In the order of
 * their values in records, from 1 on. */
template <typename Handle>
std::initializer_list<Handle> predefined();
template <>
inline std::initializer_list<MPI_Comm> predefined()
{
    static const std::initializer_list<MPI_Comm> all = {MPI_COMM_NULL, MPI_COMM_WORLD,
                                                        MPI_COMM_SELF};
    return all;
}
template <>
inline std::initializer_list<MPI_Group> predefined()
{
    static const std::initializer_list<MPI_Group> all = {MPI_GROUP_NULL, MPI_GROUP_EMPTY};
    return all;
}
template <>
inline std::initializer_list<MPI_Request> predefined()
{
    static const std::initializer_list<MPI_Request> all = {MPI_REQUEST_NULL};
    return all;
}
#endif

/** The same as a number, for records and comparisons: the same in every process of a rank. */
template <typename Handle>
std::int64_t value_of(Handle handle) noexcept
{
#ifdef OPEN_MPI
    std::int64_t value = 0;
    for (Handle one : predefined<Handle>()) {
        value++;
        if (one == handle)
            return value;
    }
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(handle));
#else
    return handle;
#endif
}
template <typename Handle>
Handle handle_of(std::int64_t value) noexcept
{
#ifdef OPEN_MPI
    const auto all = predefined<Handle>();
    if (value > 0 && value <= static_cast<std::int64_t>(all.size()))
        return all.begin()[value - 1];
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(value));
#else
    return static_cast<Handle>(value);
#endif
}

} // namespace zc::migrate
