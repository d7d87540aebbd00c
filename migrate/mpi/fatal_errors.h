/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <functional>
#include <mpi.h>
#include <string>

namespace zc::migrate {

/**
 * Errors of MPI that end the process. To MPI a rank that has moved is a world of its own, so it
 * says "rank 0" of all of them. Where the program leaves errors to MPI_ERRORS_ARE_FATAL, MPI has a
 * handler of libzcm's instead: it says which rank of the job had the error, and which one is gone
 * if that is why; the rest is done and said by MPI.
 */
class fatal_errors {
  public:
    /** @rank: of the job. Errors that belong to no communicator of the job are told by it, too. */
    static void open(int rank);
    static void close();

    /** What MPI has for a handler of the program's. It is not held. */
    static MPI_Errhandler real(MPI_Errhandler of_program);
    /** As MPI_Comm_get_errhandler(), of a communicator that MPI has. */
    static int get(MPI_Comm real, MPI_Errhandler *of_program);
    /** MPI_ERRORS_ARE_FATAL, which the caller frees. */
    static MPI_Errhandler hold_fatal();

    /** @find says which rank is gone, "" if none is, or that is not known soon; null: nothing does.
     */
    static void ask_who_is_gone(std::function<std::string()> find);

  private:
    static void on_error(MPI_Comm *comm, int *code, ...) noexcept;
};

} // namespace zc::migrate
