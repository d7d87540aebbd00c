/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "known_values.h"
#include "loops.h"

namespace zc::instrument {

/**
 * What is the same in each iteration of a loop, in its body and in all functions that this calls.
 * What is not known to be the same is taken to differ. If there are loops around it, their
 * iterations are meant, too.
 */
class iteration {
  public:
    iteration(const program &all, const call_graph &calls, const accesses &used, const loop &one);

    enum class span {
        all_iterations, /* the value is that of all iterations */
        one_iteration   /* it changes only between two: a counter of the loop does */
    };
    bool is_fixed(const function &in, const clang::Expr *value, span over) const;

    /**
     * @value as a text, which is equal only for the same variables, or for those that loops with
     * the same header count, in the same call; parameters are as @known says.
     */
    std::string text_of(const function &in, const clang::Expr *value,
                        const known_values &known) const;

  private:
    void note_body();
    void note_surroundings();
    void note_writes(const function &in, const clang::Stmt *root, std::set<std::string> &to);
    void note_addresses(const function &in, const clang::Stmt *root);
    bool is_kept_somewhere(const function &in, const clang::Stmt *address) const;
    bool is_of_counter(const function &in, const clang::Stmt *write, const clang::Expr *variable);
    void note_write(const clang::Expr *object, std::set<std::string> &to) const;
    void note_write_by(const clang::Expr *pointer, std::set<std::string> &to) const;
    bool is_written(const std::string &key, span over) const;
    bool is_fixed_variable(const clang::VarDecl *variable, span over) const;
    bool follow(const clang::VarDecl *variable, span over) const;
    bool is_fixed_argument(const clang::ParmVarDecl *parameter, span over) const;
    bool is_fixed_call(const function &in, const clang::CallExpr *call, span over) const;
    const clang::ForStmt *counting(const function &in, const clang::Stmt *at,
                                   const clang::VarDecl *counter) const;

    const program &program_;
    const call_graph &graph_;
    const accesses &used_;
    const loop &loop_;
    std::set<const clang::Stmt *> around_; /* the loop, and those around it */
    std::set<const function *> called_, called_around_;
    std::set<std::string> aliased_; /* fields whose address is kept somewhere */
    std::set<std::string> written_in_body_, written_between_;
    struct start {
        const function *in;
        const clang::Expr *value;
    };
    /* Variables that inner for loops give a value first: where they begin, by how much they grow.
     */
    std::map<std::string, std::vector<start>> counters_;
    std::set<const clang::VarDecl *> declared_, declared_around_;
    mutable std::map<std::pair<const clang::VarDecl *, span>, bool> fixed_;
};

} // namespace zc::instrument
