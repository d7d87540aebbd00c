/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "iteration.h"
#include "known_calls.h"

namespace zc::instrument {

/** A call on the way from where a walk begins to a message, and what is known there. */
struct step {
    const function *in;
    const clang::Stmt *root; /* of @in, what the walk has gone into */
    const clang::CallExpr *call;
    known_values known;
    std::set<const clang::Stmt *> unrolled; /* loops whose counter is in @known */
    std::string rounds;                     /* of those, which */
    std::map<const clang::Stmt *, std::size_t>
        repeated;             /* other loops that count: how often, or 0 */
    bool is_certain = true;   /* @in is what the call before calls, not one that it may call */
    bool is_repeated = false; /* @in calls itself */
};

/** The last step is the call of the MPI library. */
struct visit {
    std::vector<step> way;
    const known_call *known;
};

/**
 * Calls that send and receive messages or wait for them, in the order of the text; those of a
 * function once for each way to it, and those in a loop that counts from one number to another once
 * for each of its rounds.
 */
class call_walk {
  public:
    /* @now: for the texts of arguments */
    call_walk(const program &all, const call_graph &calls, const iteration &now)
        : program_(all), calls_(calls), now_(now)
    {
    }

    /**
     * @root: of @in; if it is a loop, what that runs each time
     * @point: a loop on the only way from main(); one that is not @root is not gone into
     */
    void run(const function &in, const clang::Stmt *root, const loop &point);

    const std::vector<visit> &visits() const { return visits_; }
    std::size_t before_point() const { return before_point_; }
    /** There are more ways than are followed. */
    bool is_cut() const { return visits_.size() > kVisits || steps_ > kSteps; }

  private:
    static constexpr std::size_t kVisits = 4096, kSteps = 1000 * 1000;
    static constexpr std::size_t kUnrolled = 64; /* of a loop with more rounds, one is */

    bool is_of_interest(const clang::CallExpr *call) const;
    void enter(const function &in, const clang::Stmt *at);
    void enter_call(const clang::CallExpr *call);
    void enter_function(const function &callee, const clang::CallExpr *call, bool is_certain);
    bool unroll(const function &in, const clang::ForStmt *counted);

    const program &program_;
    const call_graph &calls_;
    const iteration &now_;
    std::vector<step> way_;
    std::vector<visit> visits_;
    std::size_t steps_ = 0; /* statements that have been gone through, in all ways and rounds */
    std::size_t calls_entered_ = 0;
    const clang::Stmt *point_ = nullptr;
    std::size_t before_point_ = 0;
    std::set<const clang::Stmt *> around_; /* the point */
    std::set<const function *> to_point_;
    mutable std::map<const function *, bool> interesting_, recursive_;
    std::map<std::pair<const function *, const clang::VarDecl *>, bool> kept_;
};

/** Of a call of the MPI library that sends, receives or waits; or nullptr. */
const known_call *find_message(const program &all, const clang::CallExpr *call);

} // namespace zc::instrument
