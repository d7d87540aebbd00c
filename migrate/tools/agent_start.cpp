/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent_start.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <unistd.h>

#include "allowed_hosts.h"
#include "error.h"

namespace zc::migrate {

namespace {

std::string variable(const char *name)
{
    const char *value = std::getenv(name);
    return value ? value : "";
}

void append(std::vector<std::string> &words, const std::string &text)
{
    std::istringstream in(text);
    for (std::string word; in >> word;)
        words.push_back(word);
}

std::vector<std::string> names_of_this_host()
{
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    const std::string whole = name.data();
    return {whole, whole.substr(0, whole.find('.')), "localhost", "127.0.0.1"};
}

/** What mpiexec has been told, by an option or a variable. */
std::string told(const std::string &option, const char *name)
{
    return option.empty() ? variable(name) : option;
}

} // namespace

std::vector<std::string> agent_start::command(const std::string &host,
                                              const std::string &program) const
{
    std::vector<std::string> all;
    if (is_chosen || std::ranges::count(own_names, host) == 0) {
        all = words;
        bool has_host = false;
        for (std::string &word : all)
            for (std::size_t at; (at = word.find("%h")) != std::string::npos; has_host = true)
                word.replace(at, 2, host);
        if (!has_host)
            all.push_back(host);
    }
    all.insert(all.end(), {program, "dispatched"});
    return all;
}

agent_start find_agent_start(const std::string &chosen, const std::vector<std::string> &mpiexec)
{
    agent_start start;
    start.own_names = names_of_this_host();
    if (!chosen.empty()) {
        append(start.words, chosen);
        start.is_chosen = true;
        return start;
    }
    const mpiexec_hosts job = hosts_of_mpiexec(mpiexec);
    std::string kind = told(job.launcher, "HYDRA_LAUNCHER");
    if (kind.empty())
        kind = variable("SLURM_JOB_ID").empty() ? "ssh" : "slurm";
    const std::string program = told(job.launcher_exec, "HYDRA_LAUNCHER_EXEC");
    if (kind == "slurm") {
        start.words = {program.empty() ? "srun" : program, "--overlap", "--nodes=1", "--ntasks=1"};
        append(start.words, variable("HYDRA_LAUNCHER_EXTRA_ARGS"));
        start.words.emplace_back("--nodelist=%h");
    } else if (kind == "ssh" || kind == "rsh") {
        start.words = {program.empty() ? kind : program};
        if (kind == "ssh" && program.empty())
            start.words.insert(start.words.end(), {"-T", "-o", "BatchMode=yes"});
        append(start.words, variable("HYDRA_LAUNCHER_EXTRA_ARGS"));
    } else {
        throw error(EINVAL, "mpiexec's launcher " + kind +
                                " is not known here: say how agents are started "
                                "(--agents-launcher)");
    }
    return start;
}

} // namespace zc::migrate
