/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_CONFIG_H_INCLUDED
#define ZC_AGENT_CONFIG_H_INCLUDED

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "agent_settings.h"

namespace zc::agent {

/** The defaults: an agent moves the ranks of a job only where that has been asked for. */
inline settings observing()
{
    settings logic;
    logic.act = mode::observe;
    return logic;
}

/** Everything zcmd.toml can say. */
struct config {
    settings logic = observing();

    /* [agent] */
    std::string host;       /* as the job names it; default: the machine's host name */
    std::string listen;     /* default: all addresses, at default_port() */
    std::string advertise;  /* where peers reach us; default: the host name and the port */
    std::string key_file;   /* default: ~/.config/zc/zcmd.key */
    std::string state_file; /* default: $XDG_STATE_HOME or ~/.local/state, zc/zcmd-HOST.json */
    std::string log_level = "info";
    std::string record_file; /* samples and decisions as JSON lines; empty: none */

    /* [node] */
    double speed = 0;   /* of one processor, relative to the other nodes'; 0: measured */
    double cpus = 0;    /* 0: what the machine and the cgroup allow */
    std::string cgroup; /* directory; the node is what this cgroup may use */
    double sample = 1;  /* seconds */

    /* [policy]; the rest of it is the logic's */
    std::string transparent = "yes"; /* ranks below zc-hold: yes, observe, no */

    /* [jobs] */
    std::string socket_directory;  /* of the jobs' control sockets */
    std::string profile_directory; /* of the ranks' profiles */
    int holder_port = 0; /* where zc-hold --listen is, on all nodes; 0: zc-hold's default */
    /* Where jobs may have theirs that were started with another environment; not in the file. */
    std::vector<std::string> other_socket_directories, other_profile_directories;
    std::string why_not_runtime; /* why nothing is in $XDG_RUNTIME_DIR although that is set */

    /* [status] */
    std::string status_socket; /* default: $XDG_RUNTIME_DIR/zcm/zcmd.sock */
    int prometheus_port = 0;   /* 0: on the status socket only; else also on loopback */
};

/** What is wrong, with file, line, key and, for a name unknown, the nearest that is known. */
class config_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/** agent.mode, by its name; false: there is none of that name. */
bool set_mode(config &c, std::string_view name);

/** Where the file of this user is, unless it is said otherwise; it need not be there. */
std::string default_config_file();
/** Throws config_error. */
config read_config(const std::string &path);
config parse_config(std::string_view text, const std::string &name);
/**
 * Of a user's agents: 20000 + UID mod 12000. Theirs alone on a node, as far as user numbers allow;
 * the same on all nodes, as user numbers are; and below what the system gives to connections.
 */
int default_port(unsigned uid);

/** Fills in what depends on the machine and the environment. */
void complete(config &c);
/** All keys with type, default and meaning, as Markdown; what the manual page prints. */
std::string describe_config();

} // namespace zc::agent

#endif
