/* SPDX-License-Identifier: BSD-3-Clause */

/* How a job starts: mpiexec's processes hand over to successors that can leave each other. */
#include "job.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "checkpoint_directory.h"
#include "departure.h"
#include "error.h"
#include "identity.h"
#include "process.h"
#include "rank_build.h"
#include "spawn.h"

namespace zc::migrate {

void job::start()
{
    if (!std::getenv(kSuccessorVariable))
        hand_over_to_singletons();
    launcher_ = own_launcher();
    unsetenv(kSuccessorVariable); /* what the program spawns is no successor */
    start_as_successor();
}

/** Which saved state does the job go on with, if with any? Collective; returns what is wrong. */
std::string job::choose_saved(const world &old, greeting &first) const
{
    std::string complaint;
    try {
        /* Which is the latest may change while each rank looks. */
        if (old.rank == 0 && !settings_.restart.empty())
            first.resume = checkpoint_directory::latest(settings_.restart).directory;
    } catch (const error &problem) {
        complaint = problem.what();
    }
    share(MPI_COMM_WORLD, 0, first.resume);
    try {
        if (!first.resume.empty()) {
            const auto saved = checkpoint_directory::latest(first.resume);
            if (saved.ranks != old.size)
                throw error(EINVAL, saved.directory + " is of " + std::to_string(saved.ranks) +
                                        " ranks, this job has " + std::to_string(old.size));
            first.line = saved.whose.line;
            const std::string &then = saved.whose.program, &now = control_.own().program;
            if (old.rank == 0 && settings_.checks.build && !then.empty() && then != now)
                complain(0, saved.directory + " is of another build of the program (" + then +
                                ", and this is " + now +
                                "): what is registered has to mean the same in both");
        }
    } catch (const error &problem) {
        complaint = problem.what();
    }
    return complaint;
}

/** Two builds never meet in one job. Collective; all return the same. */
std::string job::compare_builds() const
{
    const rank_build mine{host_name(), command_.program, control_.own().program,
                          control_.own().library};
    std::vector<rank_build> ranks;
    for (const std::string &told : gather(MPI_COMM_WORLD, mine.to_text()))
        ranks.push_back(rank_build::from_text(told));
    return settings_.checks.build ? why_not_one_job(ranks) : "";
}

/** Where ranks may go, as the first rank has it that can find it out. Collective. */
allowed_hosts job::find_hosts(std::string &complaint) const
{
    allowed_hosts mine;
    try {
        mine = find_allowed_hosts(settings_.hosts);
    } catch (const error &problem) {
        if (complaint.empty())
            complaint = problem.what();
    }
    const bool found = mine.any || !mine.names.empty();
    const std::string first = agree(MPI_COMM_WORLD, found ? mine.to_json() : "");
    if (!first.empty())
        mine = allowed_hosts::from_json(first);
    else
        mine.source = "where mpiexec started it: nothing names other hosts";
    for (const std::string &host : gather(MPI_COMM_WORLD, host_name()))
        if (std::ranges::count(mine.names, host) == 0)
            mine.names.push_back(host);
    return mine;
}

void job::hand_over_to_singletons()
{
    world old;
    old.user = old.ours = MPI_COMM_WORLD;
    PMPI_Comm_rank(MPI_COMM_WORLD, &old.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &old.size);
    now_.rank = old.rank;

    greeting greeting;
    greeting.index = greeting.rank = old.rank;
    greeting.ranks = old.size;
    for (int rank = 0; rank < old.size; rank++)
        greeting.leavers.push_back(rank);
    greeting.job =
        settings_.job.empty() ? host_name() + "-" + std::to_string(getpid()) : settings_.job;
    share(MPI_COMM_WORLD, 0, greeting.job);
    greeting.identity = draw_identity();
    PMPI_Bcast(&greeting.identity, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    greeting.line = greeting.identity;
    greeting.program = control_.own().program;
    greeting.library = control_.own().library;
    greeting.features = control_.own().features;

    std::string complaint = compare_builds();
    if (complaint.empty())
        complaint = choose_saved(old, greeting);
    greeting.allowed = find_hosts(complaint);
    std::unique_ptr<departure> mine;
    std::string verdict = agree(MPI_COMM_WORLD, complaint);
    if (verdict.empty()) {
        succession next(settings_, command_, nullptr, place{host_name(), false}, false);
        std::string invitation;
        try {
            flush_all_output();
            invitation = next.invite(0);
        } catch (const error &problem) {
            complaint = problem.what();
        }
        const std::vector<std::string> all = gather(MPI_COMM_WORLD, invitation);
        try {
            if (complaint.empty()) {
                mine = next.start(all, greeting);
                mine->await();
            }
        } catch (const error &problem) {
            complaint = problem.what();
        }
        verdict = agree(MPI_COMM_WORLD, complaint);
    }
    if (!verdict.empty()) {
        if (mine)
            mine->abandon();
        if (old.rank == 0)
            complain(-1, verdict);
        throw reported_error(EIO);
    }
    growth how;
    how.old = &old;
    how.leavers = greeting.leavers;
    how.index = how.rank = old.rank;
    how.size = old.size;
    try {
        mine->line().commit();
        mine->proceed();
    } catch (const error &problem) {
        end_job(old.rank, std::string("cannot start: ") + problem.what());
    }
    link_up(how, &mine->line());
    mine->line().disconnect();
    PMPI_Finalize();
    leave_process(leaving::replaced);
}

} // namespace zc::migrate
