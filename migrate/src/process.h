/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "error.h"
#include "host_name.h"

namespace zc::migrate {

class wire;

/** What this process calls its program: for successors. */
struct command {
    std::string program;
    std::vector<std::string> arguments;
    std::string directory;
    static command of_this_process();
};

/** Print "zcm: rank N: TEXT" on the standard error; without the rank if it is negative. */
void complain(int rank, const std::string &text);

/** The cause has been printed where it was found: a handler of this error prints nothing. */
class reported_error : public error {
  public:
    explicit reported_error(int code) : error(code, "see what was printed before") {}
};

/** What the program has written and C, C++ or Fortran still keeps in buffers goes out. False: a
 * thread waits for standard input, which fflush(3) would wait for; of C's streams only standard
 * output and error have gone out. */
bool flush_output();

/** The same; throws error if not all has gone out. */
void flush_all_output();

/** From now on this process is a rank: if it exits with an error the job does not go on without it.
 * @launcher: that it was started by; null: by none of libzcm's. */
void become_rank(int rank, std::shared_ptr<wire> launcher);

/** MPI is finalized: a rank may end. Its launcher is told, which may ask for that. */
void note_finalized();

/** A process has died, and MPI has found that as soon as the launcher of that process: waits until
 * that one has said how, before this process ends for it. */
void let_launchers_say();

/** Why a process that is not, or no longer, a rank ends while its job goes on. */
enum class leaving {
    replaced,      /* mpiexec started it, and its successor goes on as the rank; MPI is finalized */
    moved,         /* its successor is the rank now; MPI is finalized */
    called_off,    /* a successor: its move was given up, and the job goes on without it */
    not_started,   /* a successor: it has not come to an understanding with its predecessor */
    not_restored,  /* a successor: it cannot be given its data; the predecessor goes on */
    fault_injected /* a test lets a successor end without a message */
};

/**
 * End this process for @why. None runs code of the program, neither exit handlers nor destructors:
 * they are the rank's, which goes on elsewhere, and may remove what it needs. The output of a
 * process that was the rank is written; that of a successor that has not become one is dropped.
 */
[[noreturn]] void leave_process(leaving why);

/** Print as complain() does, and end the whole job: by a signal, as launchers ignore other exits of
 *  one rank. */
[[noreturn]] void end_job(int rank, const std::string &text);

/** The same of a process that is a rank, for what its program has done: with @status, as it would
 * be without libzcm, where it has a launcher to ask for that. */
[[noreturn]] void end_job_with(int status, const std::string &text);

} // namespace zc::migrate
