/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_CRIU_H_INCLUDED
#define ZC_HOLDER_CRIU_H_INCLUDED

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "descriptor.h"
#include "ends.h"

namespace zc::holder {

/** One run of CRIU, a child of this process; killed if this process ends, or the run is forgotten.
 */
class criu_run {
  public:
    /** @verb: "dump" or "restore". @directory: of the images and the log. @clocks: what the process
     * does before it is CRIU, so that the clocks of the rank go on (time_namespace.h); for root
     * CRIU sees to that. Throws error. */
    criu_run(const std::string &program, const std::string &verb, const std::string &directory,
             const std::vector<std::string> &options, const std::function<void()> &clocks = {});
    ~criu_run();
    criu_run(const criu_run &) = delete;
    criu_run &operator=(const criu_run &) = delete;
    /** Whether it has ended well; nothing: not yet. It is called when a child has ended. */
    std::optional<bool> result();
    /** Waits for its end, but not for long: then it is killed. */
    void finish();
    /** Why it has not ended well: what its log has of errors, in a few lines. */
    std::string reason() const;

  private:
    pid_t pid_ = -1;
    std::string verb_, log_;
    int status_ = 0;
};

/**
 * A dump that leaves memory out (--lazy-pages): when the rest is written CRIU says so, and keeps
 * the rank frozen until this object ends. CRIU would serve the pages meanwhile: nothing asks it.
 */
class dump_pause {
  public:
    /** Throws error. */
    dump_pause();
    std::vector<std::string> options() const;
    /** CRIU has been started, and has what is its. */
    void started();
    /** Readable when has_come() is due. */
    int fd() const noexcept { return ours_.fd; }
    /** Has CRIU said it? If not, it has ended. */
    bool has_come();

  private:
    descriptor ours_, server_, status_; /* the latter are CRIU's, of one socket */
};

/** The rank @pid, stopped then and afterwards, and its @ends as things of the next host. */
std::vector<std::string> dump_options(pid_t pid, const std::vector<end> &ends);
/** A rank, stopped, as a child of the caller, with the halves of @ends that are its; @filled: a
 * page_filler gives it its memory. */
std::vector<std::string> restore_options(const std::vector<new_end> &ends, bool filled);

} // namespace zc::holder

#endif
