/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ZC_PREFLIGHT=1 PROGRAM: all libraries have been loaded when constructors run. This one finds out
 * what else a rank needs, prints it, and ends the process before main(): see preflight.h.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <unistd.h>

#include "preflight.h"

extern char **environ;

namespace zc::migrate {

namespace {

/** A world of one: not one of a launcher's whose variables have come here. */
void forget_launcher()
{
    for (const char *name : {"PMI_FD", "PMI_PORT", "PMI_ID", "PMI_RANK", "PMI_SIZE", "PMI_SPAWNED",
                             "PMIX_RANK", "PMIX_NAMESPACE"})
        unsetenv(name);
}

/** MPI ends the process if it cannot be initialised, so what is known is printed before. */
std::string initialise_mpi()
{
    int provided = 0;
    const int code = PMPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided);
    if (code == MPI_SUCCESS) {
        PMPI_Finalize();
        return "";
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    PMPI_Error_string(code, text, &length);
    return text;
}

[[gnu::constructor]] void run_preflight()
{
    if (!std::getenv("ZC_PREFLIGHT"))
        return;
    forget_launcher();
    preflight found = preflight::of_this_process();
    found.mpi = initialise_mpi();
    found.libraries = loaded_libraries::of_this_process();
    std::printf("%s\n", found.to_line().c_str());
    std::fflush(stdout);
    _exit(0);
}

} // namespace

} // namespace zc::migrate
