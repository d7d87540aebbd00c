/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "loops.h"

namespace zc::instrument {

/**
 * What an iteration of a loop runs, in its body and in all functions that this calls; and what
 * there is the same in each iteration. What is not known to be the same is taken to differ.
 */
class iteration {
  public:
    iteration(const program &all, const call_graph &calls, const accesses &used, const loop &one);

    using call_site = std::pair<const function *, const clang::CallExpr *>;
    const std::vector<call_site> &calls() const { return calls_below_; }

    enum class span {
        all_iterations, /* the value is that of all iterations */
        one_iteration   /* it changes only between two: a counter of the loop does */
    };
    bool is_fixed(const function &in, const clang::Expr *value, span over) const;

    /**
     * What decides in which iterations @at is run, and how often: conditions that differ, by their
     * text if that says the same everywhere in an iteration, and by their place if not.
     */
    std::set<std::string> conditions_of(const function &in, const clang::Stmt *at) const;

    /**
     * @value as a text, which is equal only for the same variables, and for those of a name that
     * loops of one function count.
     */
    std::string text_of(const function &in, const clang::Expr *value) const;

  private:
    void note_writes(const function &in, const clang::Stmt *root, std::set<std::string> &to);
    void note_addresses(const function &in, const clang::Stmt *root);
    bool is_of_counter(const function &in, const clang::Stmt *write, const clang::Expr *variable);
    void note_write(const clang::Expr *object, std::set<std::string> &to) const;
    void note_write_by(const clang::Expr *pointer, std::set<std::string> &to) const;
    bool is_written(const std::string &key, span over) const;
    bool is_fixed_variable(const clang::VarDecl *variable, span over) const;
    bool follow(const clang::VarDecl *variable, span over) const;
    bool is_fixed_argument(const clang::ParmVarDecl *parameter, span over) const;
    bool is_fixed_call(const function &in, const clang::CallExpr *call, span over) const;
    void add_condition(const function &in, const clang::Stmt *control, const std::string &branch,
                       std::set<std::string> &to) const;
    void add_jumps(const function &in, const clang::Stmt *root, const clang::Stmt *at,
                   std::set<std::string> &to) const;
    void add_conditions(const function &in, const clang::Stmt *at, std::set<std::string> &seen,
                        std::set<std::string> &to) const;
    const clang::Stmt *root_of(const function &in, const clang::Stmt *at) const;

    const program &program_;
    const call_graph &graph_;
    const accesses &used_;
    const loop &loop_;
    std::vector<call_site> calls_below_;
    std::set<const function *> called_;
    std::set<std::string> aliased_; /* fields whose address is kept somewhere */
    std::set<std::string> written_in_body_, written_between_;
    struct start {
        const function *in;
        const clang::Expr *value;
    };
    /* Variables that inner for loops give a value first: where they begin, by how much they grow.
     */
    std::map<std::string, std::vector<start>> counters_;
    std::set<const clang::VarDecl *> declared_;
    mutable std::map<std::pair<const clang::VarDecl *, span>, bool> fixed_;
};

} // namespace zc::instrument
