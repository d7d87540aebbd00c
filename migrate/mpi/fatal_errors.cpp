/* SPDX-License-Identifier: BSD-3-Clause */
#include "fatal_errors.h"

#include <utility>

#include "host_name.h"
#include "process.h"
#include "returned_errors.h"

namespace zc::migrate {

namespace {

struct {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    int rank = -1;
    std::function<std::string()> who_is_gone;
} told;

constexpr MPI_Comm kOfThisProcess[] = {MPI_COMM_WORLD, MPI_COMM_SELF};

void replace(MPI_Errhandler old, MPI_Errhandler by)
{
    for (const MPI_Comm comm : kOfThisProcess) {
        MPI_Errhandler before = MPI_ERRHANDLER_NULL;
        PMPI_Comm_get_errhandler(comm, &before);
        if (before == old)
            PMPI_Comm_set_errhandler(comm, by);
        PMPI_Errhandler_free(&before);
    }
}

/** Of a process that has died, it may be: of several requests each has an error of its own. */
bool may_be_of_a_loss(int what)
{
#ifdef MPIX_ERR_PROC_FAILED
    if (what == MPIX_ERR_PROC_FAILED)
        return true;
#endif
    return what == MPI_ERR_IN_STATUS;
}

/** Calls of MPI's that an error came of may hold what another call needs. */
bool may_call_mpi()
{
    int threads = MPI_THREAD_MULTIPLE;
    PMPI_Query_thread(&threads);
    return threads < MPI_THREAD_MULTIPLE;
}

} // namespace

void fatal_errors::on_error(MPI_Comm *comm, int *code, ...)
{
    const MPI_Comm where = *comm;
    const int problem = *code;
    int what = problem;
    PMPI_Error_class(problem, &what);
    std::string text = "an error of MPI on host " + host_name() + ": " + words_of(what);
    if (may_be_of_a_loss(what) && told.who_is_gone && may_call_mpi())
        if (const std::string gone = std::exchange(told.who_is_gone, nullptr)(); !gone.empty())
            text += "; " + gone;
    complain(told.rank, text);
    PMPI_Comm_set_errhandler(where, MPI_ERRORS_ARE_FATAL);
    PMPI_Comm_call_errhandler(where, problem);
    PMPI_Abort(where, problem);
}

void fatal_errors::open(int rank)
{
    told.rank = rank;
    PMPI_Comm_create_errhandler(on_error, &told.handler);
    replace(MPI_ERRORS_ARE_FATAL, told.handler);
}

void fatal_errors::close()
{
    if (told.handler == MPI_ERRHANDLER_NULL)
        return;
    told.who_is_gone = nullptr;
    replace(told.handler, MPI_ERRORS_ARE_FATAL);
    PMPI_Errhandler_free(&told.handler);
}

MPI_Errhandler fatal_errors::real(MPI_Errhandler of_program)
{
    return of_program == MPI_ERRORS_ARE_FATAL && told.handler != MPI_ERRHANDLER_NULL ? told.handler
                                                                                     : of_program;
}

MPI_Errhandler fatal_errors::of_program(MPI_Errhandler real)
{
    return real == told.handler && real != MPI_ERRHANDLER_NULL ? MPI_ERRORS_ARE_FATAL : real;
}

int fatal_errors::get(MPI_Comm real, MPI_Errhandler *handler)
{
    const int code = PMPI_Comm_get_errhandler(real, handler);
    if (code == MPI_SUCCESS && of_program(*handler) != *handler) {
        PMPI_Errhandler_free(handler);
        *handler = hold(MPI_ERRORS_ARE_FATAL);
    }
    return code;
}

MPI_Errhandler fatal_errors::hold(MPI_Errhandler handler)
{
    MPI_Errhandler before, held;
    PMPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    PMPI_Comm_get_errhandler(MPI_COMM_SELF, &held);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    PMPI_Errhandler_free(&before);
    return held;
}

void fatal_errors::ask_who_is_gone(std::function<std::string()> find)
{
    told.who_is_gone = std::move(find);
}

} // namespace zc::migrate
