/* SPDX-License-Identifier: BSD-3-Clause */

/* The beginning and the end of MPI, which are those of the job. */
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mpi.h>
#include <system_error>

#include "layer.h"
#include "lifetime.h"
#include "process.h"
#include "settings.h"

using namespace zc::migrate;

namespace {

/**
 * UCX 1.13 asks after 128 peers and remembers the next one. In a movable job there are endpoints
 * with and without error handling, and one without that is closed while it is the next one leaves a
 * pointer to freed memory (ucp_worker_keepalive_remove_ep()). Where all are asked in one round none
 * is the next one. UCX reads its settings in MPI_Init; any other value would not do.
 */
void prepare_ucx()
{
    if (ranks_may_move())
        setenv("UCX_KEEPALIVE_NUM_EPS", "inf", 1);
}

/**
 * While MPI is initialised: hwloc does not look at devices. MPICH has it read all of them, and over
 * ch4:ucx and ch4:zc looks at processors and memory only. In a virtual machine each word of a PCI
 * device's configuration is asked of the host: six devices took 14 ms of the 32 that a process
 * needed until MPI_Init had returned, and a process starts for each rank that moves. What the user
 * has set is left alone, and the program finds the variable as it was. A process that has threads
 * already is left alone, too: one that looks into the environment while it is changed may crash.
 */
class without_devices {
  public:
    without_devices()
        : hides_(kIsOfUse && ranks_may_move() && is_alone() && !std::getenv(kComponents))
    {
        if (hides_)
            setenv(kComponents, "-linuxio,-pci", 1);
    }
    ~without_devices()
    {
        if (hides_)
            unsetenv(kComponents);
    }
    without_devices(const without_devices &) = delete;
    without_devices &operator=(const without_devices &) = delete;

  private:
    /** Has this process one thread? */
    static bool is_alone()
    {
        std::error_code failed;
        const std::filesystem::directory_iterator tasks("/proc/self/task", failed), end;
        return !failed && std::distance(tasks, end) == 1;
    }

    static constexpr const char *kComponents = "HWLOC_COMPONENTS";
#ifdef OPEN_MPI
    static constexpr bool kIsOfUse = false; /* it may choose networks by what is found */
#else
    static constexpr bool kIsOfUse = true;
#endif
    const bool hides_;
};

template <typename Call>
int initialise(Call call)
{
    prepare_ucx();
    const int code = [&] {
        const without_devices quick;
        return call();
    }();
    if (code == MPI_SUCCESS)
        start_job();
    return code;
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

int MPI_Init(int *argc, char ***argv)
{
    return initialise([&] { return PMPI_Init(argc, argv); });
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return initialise([&] { return PMPI_Init_thread(argc, argv, required, provided); });
}

int MPI_Finalize(void)
{
    leave_job();
    const int code = PMPI_Finalize();
    if (code == MPI_SUCCESS)
        note_finalized();
    return code;
}

int MPI_Abort(MPI_Comm comm, int code)
{
    /* Launchers ignore how a process ends whose world is its own. */
    if (layer::is_on() && comm != MPI_COMM_SELF)
        abort_job(code);
    return PMPI_Abort(layer::real(comm), code);
}

#if MPI_VERSION >= 4
int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    if (!layer::is_on())
        return PMPI_Session_init(info, handler, session);
    complain(layer::instance().world().rank,
             "MPI_Session_init(): a session knows the processes of MPI, not the ranks of a movable "
             "job");
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_UNSUPPORTED_OPERATION);
    return MPI_ERR_UNSUPPORTED_OPERATION;
}
#endif

#pragma GCC visibility pop
} // extern "C"
