/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>

namespace zc::migrate {

/**
 * Can the launcher start @program on @host? Asked before MPI_Comm_spawn, which in
 * MPICH never returns when the host or the program is not there.
 *
 * @how: "none"; a command in which %h is the host and %p the program; or "auto":
 * the launcher that this process was started by (Hydra's command line tells it)
 * runs "test -x PROGRAM" there, or, where that cannot be known, the name is looked up
 * and port 22 is knocked at (a refusal is an answer too).
 *
 * Throws error: EHOSTUNREACH, ENOENT or ETIMEDOUT, naming the culprit.
 */
void probe_host(const std::string &how, const std::string &host, const std::string &program,
                double timeout_s);

} // namespace zc::migrate
