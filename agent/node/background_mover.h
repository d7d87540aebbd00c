/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_BACKGROUND_MOVER_H_INCLUDED
#define ZC_AGENT_BACKGROUND_MOVER_H_INCLUDED

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "message.h"

namespace zc::agent {

/** The text, without what does not belong on a line, and no longer than messages carry. */
std::string printable(std::string text);

/**
 * Moves under way, a thread for each that waits for its end; what became of them comes through
 * take(), some time later, and is remembered for those who ask again.
 */
class background_mover {
  public:
    background_mover();
    virtual ~background_mover();
    background_mover(const background_mover &) = delete;
    background_mover &operator=(const background_mover &) = delete;

    void query(const msg::query &wanted);
    std::vector<msg::outcome> take();
    /** Becomes readable when take() has something. */
    int wake_fd() const { return wake_; }
    /** Whether such a move has been begun here. */
    bool knows(const txn_id &txn);

  protected:
    /** Unless it has begun already. @act is called by another thread. */
    void begin(const msg::ask &wanted, std::function<msg::outcome()> act);
    /** Readable when the threads have to end. */
    int stop_fd() const { return stop_; }
    /** Waits for the threads: the destructor of what they use calls it. */
    void end();

  private:
    void push(msg::outcome o);

    int wake_ = -1;
    int stop_ = -1;
    std::mutex mutex_;
    std::vector<msg::outcome> done_;
    std::map<txn_id, msg::outcome> past_; /* running ones too */
    std::vector<txn_id> past_order_;
    std::map<txn_id, std::thread> threads_;
};

} // namespace zc::agent

#endif
