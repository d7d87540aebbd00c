/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>

namespace zc::migrate {

/** What a host is asked. */
struct probe {
    std::string how; /* "none"; a command in which %h is the host and %p the program; or "auto" */
    std::string program;
    std::string run; /* a command line there, once the program has been found; "" for none */
    double timeout_s = 10;
};

/**
 * Can the launcher start the program on @host? Asked before anything is started there, since a
 * launcher that fails later may keep mpiexec waiting.
 *
 * "auto": the launcher that this process was started by (Hydra's command line tells it: ssh, rsh or
 * Slurm's srun, with HYDRA_LAUNCHER_EXTRA_ARGS) runs "test -x PROGRAM" there, and then what is to
 * be run; or, where that cannot be known, the name is looked up and port 22 is knocked at (a
 * refusal is an answer too).
 *
 * Returns what was printed there; "" if nothing was run. Throws error: EHOSTUNREACH, ENOENT,
 * ENOEXEC (what was run has failed) or ETIMEDOUT, naming the culprit.
 */
std::string probe_host(const probe &what, const std::string &host);

/** What a message has room for of what a program has printed. */
std::string beginning_of(const std::string &said);

/** @text as one word of a shell. */
std::string shell_word(const std::string &text);

} // namespace zc::migrate
