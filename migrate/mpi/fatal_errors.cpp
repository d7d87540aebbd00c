/* SPDX-License-Identifier: BSD-3-Clause */
#include "fatal_errors.h"

#include <cstdarg>
#include <utility>

#include "host_name.h"
#include "process.h"
#include "returned_errors.h"

namespace zc::migrate {

namespace {

struct {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm with_fatal = MPI_COMM_NULL; /* Open MPI counts that one, too */
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

/** Of a process that has died, it may be: of several requests each has an error of its own, and not
 * every netmod has a class for it. */
bool may_be_of_a_loss(int what)
{
#ifdef MPIX_ERR_PROC_FAILED
    if (what == MPIX_ERR_PROC_FAILED)
        return true;
#endif
    return what == MPI_ERR_IN_STATUS || what == MPI_ERR_OTHER;
}

/** Calls of MPI's that an error came of may hold what another call needs. */
bool may_call_mpi()
{
    int threads = MPI_THREAD_MULTIPLE;
    PMPI_Query_thread(&threads);
    return threads < MPI_THREAD_MULTIPLE;
}

} // namespace

/** MPI may hold the lock of @comm, so this leaves it alone. */
void fatal_errors::on_error(MPI_Comm *comm, int *code, ...) noexcept
{
    const MPI_Comm where = *comm;
    const int problem = *code;
    int what = problem;
    PMPI_Error_class(problem, &what);
    std::string text = "an error of MPI";
#ifdef OPEN_MPI
    va_list more;
    va_start(more, code);
    if (const char *call = va_arg(more, const char *))
        text += std::string(" in ") + call;
    va_end(more);
#endif
    text += " on host " + host_name() + ": " + words_of(what);
    const bool is_loss = may_be_of_a_loss(what);
    if (is_loss && told.who_is_gone && may_call_mpi())
        if (const std::string gone = std::exchange(told.who_is_gone, nullptr)(); !gone.empty())
            text += "; " + gone;
    complain(told.rank, text);
    if (is_loss)
        let_launchers_say();
    const MPI_Comm other = where == MPI_COMM_SELF ? MPI_COMM_WORLD : MPI_COMM_SELF;
    PMPI_Comm_set_errhandler(other, MPI_ERRORS_ARE_FATAL);
    PMPI_Comm_call_errhandler(other, problem);
    PMPI_Abort(other, problem);
}

void fatal_errors::open(int rank)
{
    told.rank = rank;
    PMPI_Comm_create_errhandler(on_error, &told.handler);
    replace(MPI_ERRORS_ARE_FATAL, told.handler);
#ifdef OPEN_MPI
    PMPI_Comm_dup(MPI_COMM_SELF, &told.with_fatal);
    PMPI_Comm_set_errhandler(told.with_fatal, MPI_ERRORS_ARE_FATAL);
#endif
}

void fatal_errors::close()
{
    if (told.handler == MPI_ERRHANDLER_NULL)
        return;
    told.who_is_gone = nullptr;
    replace(told.handler, MPI_ERRORS_ARE_FATAL);
    PMPI_Errhandler_free(&told.handler);
    if (told.with_fatal != MPI_COMM_NULL)
        PMPI_Comm_free(&told.with_fatal);
}

MPI_Errhandler fatal_errors::real(MPI_Errhandler of_program)
{
    return of_program == MPI_ERRORS_ARE_FATAL && told.handler != MPI_ERRHANDLER_NULL ? told.handler
                                                                                     : of_program;
}

int fatal_errors::get(MPI_Comm real, MPI_Errhandler *handler)
{
    const int code = PMPI_Comm_get_errhandler(real, handler);
    if (code == MPI_SUCCESS && *handler == told.handler && *handler != MPI_ERRHANDLER_NULL) {
        PMPI_Errhandler_free(handler);
        *handler = hold_fatal();
    }
    return code;
}

MPI_Errhandler fatal_errors::hold_fatal()
{
    MPI_Errhandler held = MPI_ERRORS_ARE_FATAL; /* which MPICH does not count */
    if (told.with_fatal != MPI_COMM_NULL)
        PMPI_Comm_get_errhandler(told.with_fatal, &held);
    return held;
}

void fatal_errors::ask_who_is_gone(std::function<std::string()> find)
{
    told.who_is_gone = std::move(find);
}

} // namespace zc::migrate
