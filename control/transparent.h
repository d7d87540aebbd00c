/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_TRANSPARENT_H_INCLUDED
#define ZC_CONTROL_TRANSPARENT_H_INCLUDED

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "moves_together.h"

namespace zc::control {

/** Ends of zcctl. */
enum exit_status {
    kDone = 0,
    kRefused = 1,
    kUsage = 2,
    kNoJob = 3, /* nor rank, nor host, nor agent */
    kBusy = 4
};

/** How ranks below zc-hold are found and moved. */
struct transparent_options {
    std::string job;
    std::vector<std::string> hosts; /* where zc-hold --listen is asked; empty: where agents are */
    std::string key_file;           /* empty: that of this user */
    move_limits limits;
    double within_s = 0; /* that all moves are to take, if it can be; 0: as they like */
    bool as_json = false;
};

/** Whether this build can. */
bool transparent_is_built();

/** Whether a job that @how names, or any if it names none, has ranks below zc-hold. */
bool has_held_job(const transparent_options &how);

/** Prints the ranks of a job that are below zc-hold, and where they are. Return: an exit_status. */
int print_held_status(const transparent_options &how);

/** Adds to @report, of drain(), what becomes of the ranks below zc-hold that are on @host: "moved",
 * "stayed", "silent", "known". Throws what held_ranks throws. */
void drain_transparently(const transparent_options &how, const std::string &host,
                         const std::vector<std::string> &to, nlohmann::json &report);

/** Moves @ranks of a job, below zc-hold, to @to: HOST or HOST:PORT. Prints what comes of it.
 * Return: an exit_status. */
int move_transparently(const transparent_options &how, const std::vector<int> &ranks,
                       const std::string &to);

} // namespace zc::control

#endif
