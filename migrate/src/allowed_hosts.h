/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zc::migrate {

/** The addresses of hosts. A name of DNS can take seconds, and a list can have many. */
struct name_service {
    name_service();
    std::function<std::set<std::string>(const std::string &)> addresses_of; /* getaddrinfo() */
    std::chrono::milliseconds limit{5000}; /* then no more names are looked up */
};

/**
 * Where ranks of the job may go: what the resource manager or mpiexec was given, or what the user
 * says instead. The job itself refuses other hosts, whoever asks.
 */
struct allowed_hosts {
    bool any = false;
    std::vector<std::string> names;
    std::string source; /* where the list comes from, for a sentence: "SLURM_JOB_NODELIST" */

    /**
     * Throws error(EPERM), which says where the list comes from, unless @host is in it, by its
     * name, by its name without the domain, or under another name with the same address. Names
     * are looked up only for the last, and only if @host has an address.
     */
    void check(const std::string &host, const name_service &service = {}) const;

    std::string to_json() const;
    static allowed_hosts from_json(const std::string &text);
};

/** Every host has it: it does not tell which one is meant. */
bool is_loopback(const std::string &address);

/** The host names of Slurm's notation: "a[1-3,07],b" is a1 a2 a3 a07 b. Throws error(EINVAL). */
std::vector<std::string> expand_node_list(std::string_view text);

/** The first word of each line, each once; "HOST:N" and what follows '#' as in Hydra's files. */
std::vector<std::string> hosts_of_file(std::string_view text);

/** A command line of mpiexec (Hydra): its list of hosts, or the file that has them; and how it
 *  starts processes there. */
struct mpiexec_hosts {
    std::vector<std::string> names;
    std::string file;
    std::string launcher;      /* "ssh", "slurm", ... */
    std::string launcher_exec; /* the program instead of ssh or srun */
};
mpiexec_hosts hosts_of_mpiexec(const std::vector<std::string> &words);

/**
 * What this process can find out: ZC_MIGRATE_HOSTS (@chosen: "", "any", or names with commas
 * between them), SLURM_JOB_NODELIST, PBS_NODEFILE, then the mpiexec that started it if that is on
 * this host, or HYDRA_HOST_FILE. Without names if none of these says. Throws error(EINVAL) for a
 * list that cannot be read.
 */
allowed_hosts find_allowed_hosts(const std::string &chosen);

/** The same for a job that is to be started by @command, mpiexec's words: this host if none of
 *  these says. */
allowed_hosts hosts_of_command(const std::string &chosen, const std::vector<std::string> &command);

} // namespace zc::migrate
