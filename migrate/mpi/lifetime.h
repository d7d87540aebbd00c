/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

namespace zc::migrate {

/**
 * After MPI has been initialised: with ZC_MIGRATE=1 the job starts. Does not return in a process
 * that mpiexec started, whose successor goes on. What goes wrong is printed, and zcm_init()
 * returns it; the program then runs as if switched off.
 */
void start_job() noexcept;

/** Before MPI is finalized. Collective. */
void leave_job() noexcept;

/** MPI_Abort() of a communicator of the job. Does not return if there is one. */
void abort_job(int code) noexcept;

} // namespace zc::migrate
