/* SPDX-License-Identifier: BSD-3-Clause */
#include "spawn.h"

#include <vector>

#include "error.h"
#include "mpi_connection.h"
#include "watchdog.h"
#include "world.h"

namespace zc::migrate {

namespace {

MPI_Comm spawn(const command &command, const place &host)
{
    /* Through env(1): not every launcher hands our environment on. */
    std::vector<std::string> words = inherited_environment();
    std::erase_if(words,
                  [](const std::string &w) { return w.starts_with("ZC_MIGRATE_SUCCESSOR="); });
    words.emplace_back("ZC_MIGRATE_SUCCESSOR=1");
    words.push_back(command.program);
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);

    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", host.name.c_str());
#ifdef OPEN_MPI
    /* To add one that it knows would end its daemon there; one that it does not has to be. */
    if (host.is_new)
        MPI_Info_set(info, "add-host", host.name.c_str());
#endif
    MPI_Info_set(info, "wdir", command.directory.c_str());
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm between = MPI_COMM_NULL;
    int failed = MPI_SUCCESS;
    const int code = MPI_Comm_spawn("/usr/bin/env", arguments.data(), 1, info, 0, MPI_COMM_SELF,
                                    &between, &failed);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    MPI_Errhandler_free(&before);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS || failed != MPI_SUCCESS || between == MPI_COMM_NULL) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code != MPI_SUCCESS ? code : failed, text, &length);
        throw error(EIO, "cannot start a successor on " + host.name + ": " +
                             std::string(text, static_cast<std::size_t>(length)));
    }
    return between;
}

} // namespace

std::unique_ptr<departure> start_successor(const settings &settings, const command &command,
                                           const place &host, const greeting &greeting)
{
    const double begin = seconds();
    std::unique_ptr<lifeline> line;
    {
        /* MPI_Comm_spawn of MPICH never returns if the child ends before MPI_Init. */
        const watchdog guard(settings.timeout_s,
                             "no successor on " + host.name + " after " +
                                 std::to_string(static_cast<int>(settings.timeout_s)) +
                                 " s: " + command.program + " ended before MPI_Init there?");
        line = std::make_unique<lifeline>(
            std::make_unique<mpi_connection>(spawn(command, host), false), false,
            settings.timeout_s);
    }
    return std::make_unique<departure>(settings, std::move(line), greeting, ms_since(begin));
}

} // namespace zc::migrate
