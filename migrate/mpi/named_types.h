/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mpi.h>

namespace zc::migrate {

/**
 * Sizes of the types that every program has, as MPI tells them at the start: these keep their
 * handles and sizes until the process ends, so that a message need not ask MPI for them.
 */
class named_types {
  public:
    /** Once, before other threads are in MPI. */
    static void open();

    /** Bytes of one element; 0 of a type that is not known, which MPI is to be asked for. */
    static int size_of(MPI_Datatype type) noexcept
    {
        const entry &there = all_[place_of(type)];
        return there.type == type ? there.size : 0;
    }

  private:
    struct entry {
        MPI_Datatype type;
        int size; /* 0: free */
    };
    static constexpr unsigned kBits = 7;

    /* Of two that have one place, the first is kept. */
    static std::size_t place_of(MPI_Datatype type) noexcept
    {
#ifdef OPEN_MPI
        const auto value = reinterpret_cast<std::uintptr_t>(type) >> 6;
#else
        const auto value = static_cast<std::uint32_t>(type);
#endif
        return static_cast<std::uint32_t>(value) * 2654435769u >> (32 - kBits);
    }

    static inline std::array<entry, 1u << kBits> all_{};
};

} // namespace zc::migrate
