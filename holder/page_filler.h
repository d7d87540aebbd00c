/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_FILLER_H_INCLUDED
#define ZC_HOLDER_PAGE_FILLER_H_INCLUDED

#include <optional>
#include <string>

#include <sys/types.h>

#include "descriptor.h"
#include "page_places.h"

namespace zc::holder {

/**
 * Gives a rank that CRIU restores with --lazy-pages its memory, from the store of this host: what
 * it touches at once, and the rest in order, while it runs already.
 *
 *   LISTENING ── CRIU, which connects ──▶ CONNECTED ── its userfaultfd ──▶ FILLING ──▶ DONE
 *                                                                                └────▶ FAILED
 *
 * CRIU sends the rank's process number, its userfaultfd(2), and a word when it has restored all
 * else. Filling is done by a process of its own. When the last descriptor of a userfaultfd is
 * closed the kernel gives pages of zeros for those that are missing, and nothing tells the rank. So
 * a second process shares all descriptors of the first, those of the rank's children included, as
 * long as this object is there, and the first goes on without this: whichever is killed, the rank
 * and its children wait for the page, and its holder can end them. The second one is a child of
 * this process, too, which has to take note of its end.
 */
class page_filler {
  public:
    /** Whether the kernel lets this process fill the memory of others, and follow what they do with
     * it. */
    static bool is_possible();
    /** Listens where CRIU looks for it when it restores from @directory. Throws error. */
    explicit page_filler(const std::string &directory);
    ~page_filler();
    page_filler(const page_filler &) = delete;
    page_filler &operator=(const page_filler &) = delete;

    /** Readable when accept(), and then when start() is due; -1: neither. */
    int fd() const noexcept { return connection_.fd >= 0 ? connection_.fd : listening_.fd; }
    bool is_connected() const noexcept { return connection_.fd >= 0; }
    void accept();
    /** @store: the file in which @memory lies. Throws error. */
    void start(const descriptor &store, page_places memory);
    /** Whether all pages are there; false: the rank will miss some; nothing: not yet. It is called
     * when a child has ended. */
    std::optional<bool> result();
    /** Has CRIU said that all else is restored? It waits for what it has said to be heard, for a
     * moment. Before rank_runs(). */
    bool is_restored() const;
    /** It is about to run: until then nothing else than this changes its memory. */
    void rank_runs() const;
    /** Of the process; -1: there is none. */
    pid_t pid() const noexcept { return pid_; }

  private:
    descriptor listening_, connection_, faults_;
    descriptor process_; /* a socket to it, and to the one that shares its descriptors */
    pid_t pid_ = -1;
    descriptor end_; /* of the process: readable then (pidfd_open(2)) */
};

} // namespace zc::holder

#endif
