/* SPDX-License-Identifier: BSD-3-Clause */
#include "held_job.h"

#include <cerrno>
#include <set>

#include "error.h"

namespace zc::control {
namespace {

/** Where ranks were looked for. */
std::string asked(const holder::held_survey &found)
{
    std::string listening, silent;
    for (const auto &[endpoint, name] : found.hosts)
        listening += ", " + name;
    for (const std::string &endpoint : found.silent)
        silent += (silent.empty() ? "; no zc-hold --listen answers at " : ", ") + endpoint;
    return "this host" + listening + " asked" + silent + "; --hosts names more";
}

} // namespace

std::string the_held_job(const holder::held_survey &found, const std::string &wanted)
{
    std::set<std::string> jobs, firsts;
    for (const holder::held_rank &each : found.ranks) {
        jobs.insert(each.job);
        firsts.insert(each.first);
    }
    if (jobs.contains(wanted))
        return wanted;
    if (wanted.empty() && firsts.size() == 1 && jobs.contains(*firsts.begin()))
        return *firsts.begin(); /* it has spawned all others */
    std::string names;
    for (const std::string &name : jobs)
        names += " " + name;
    if (!wanted.empty() && !jobs.empty())
        throw error(ENOENT, "no rank of job " + wanted + " is below zc-hold; there are" + names +
                                " (" + asked(found) + ")");
    if (jobs.empty())
        throw error(ENOENT, "no rank" + (wanted.empty() ? "" : " of job " + wanted) +
                                " is below zc-hold (" + asked(found) + ")");
    if (jobs.size() > 1)
        throw error(ENOENT, "several jobs, choose one with --job:" + names);
    return *jobs.begin();
}

std::vector<holder::held_rank> the_held_ranks(const holder::held_survey &found,
                                              const std::string &job, const std::vector<int> &ranks)
{
    std::vector<holder::held_rank> chosen;
    std::set<int> seen;
    for (const int rank : ranks) {
        const std::string name = "rank " + std::to_string(rank);
        if (!seen.insert(rank).second)
            throw error(EINVAL, name + " is named twice");
        const std::size_t before = chosen.size();
        int size = 0;
        for (const holder::held_rank &each : found.ranks) {
            if (each.job != job)
                continue;
            size = each.size;
            if (each.rank == rank)
                chosen.push_back(each);
        }
        if (chosen.size() > before + 1)
            throw error(ENOENT, "several zc-hold have " + name + " of job " + job);
        if (chosen.size() > before)
            continue;
        if (rank < 0 || (size > 0 && rank >= size))
            throw error(ENOENT, "no such rank: " + std::to_string(rank) + "; job " + job +
                                    " has 0 to " + std::to_string(size - 1));
        throw error(ENOENT, name + " of job " + job +
                                " is not below zc-hold, or its host was not "
                                "asked (" +
                                asked(found) + ")");
    }
    return chosen;
}

} // namespace zc::control
