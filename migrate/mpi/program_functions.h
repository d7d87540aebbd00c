/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <functional>
#include <mpi.h>
#include <string>

namespace zc::migrate {

/**
 * The functions that a program has libzcm call in safe points. One cannot be interrupted: where it
 * does not return in time that is printed, once for each function, and what happens then depends on
 * what it was called for (job::call_together).
 */
class program_functions {
  public:
    using world_fn = void (*)(MPI_Comm, void *);
    using save_fn = int (*)(void *);
    enum class kind { save, release, rebuild };

    explicit program_functions(double limit_s) : limit_s_(limit_s) {}

    void set_save(save_fn fn, void *argument);
    void set_rebuild(world_fn release, world_fn rebuild, void *argument);
    bool has(kind what) const noexcept;
    double limit_s() const noexcept { return limit_s_; }
    /** What it is called in messages. */
    static const char *name_of(kind what) noexcept;

    /**
     * @rank, for messages. @then: what becomes of the ranks if it takes too long. @late is called
     * by another thread in that case. Returns what the function of zcm_on_save() has, else 0.
     */
    int call(kind what, int rank, const char *then, const std::function<void()> &late = {});

  private:
    int call_now(kind what);

    double limit_s_;
    save_fn save_ = nullptr;
    void *save_argument_ = nullptr;
    world_fn release_ = nullptr, rebuild_ = nullptr;
    void *argument_ = nullptr;
    bool said_[3] = {}; /* of each kind: it was late, once */
};

} // namespace zc::migrate
