/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "findings.h"
#include "loops.h"
#include "pointers.h"

namespace zc::instrument {

/**
 * Which loops all ranks pass equally often: those whose conditions are the same on every rank.
 *
 * What MPI_Comm_rank(), received messages, the time and files give may differ between ranks; so
 * does what is computed of it, or under a condition that depends on it. What MPI_Bcast(),
 * MPI_Allreduce() and MPI_Allgather() over all ranks give does not. It follows the flow of each
 * function; a function that is called at several places is taken to be called with all of their
 * arguments at once.
 */
class uniformity {
  public:
    /** Between what it may differ: two ranks; a rank and its successor, which runs main() again. */
    enum class between { ranks, runs };

    /** @at: of runs, where it counts what differs; without one, anywhere. */
    uniformity(const program &all, const call_graph &calls, const accesses &used,
               const std::vector<assignment> &assignments, const pointers &led,
               between what = between::ranks, const loop *at = nullptr);

    /** How often the flow of a function has been followed. */
    std::size_t rounds() const { return rounds_; }

    /** Why ranks might pass @one's body, and so a safe point there, in different numbers. */
    findings differences(const loop &one) const;
    /** May the condition of @control, an if, a loop or the like, differ between ranks? */
    bool may_differ(const clang::Stmt *control) const { return conditions_.count(control) > 0; }
    /** Where the variable or field @key begins to differ that does at the loop; empty: it does not.
     */
    std::string differs_since(const std::string &key) const;
    /** Does it, or a field of it, differ there? */
    bool differs_in(const std::string &key) const;
    /** May it, or a field of it, lead to what is allocated? */
    bool leads_to_block(const std::string &key) const;
    /** Fields that do, by key. */
    std::map<std::string, const clang::FieldDecl *> differing_fields() const;

  private:
    /* What may differ, by key, and where that begins. */
    using differing = std::map<std::string, std::string>;
    struct function_state {
        differing entry, exit;
        std::string returned; /* where what it returns begins to differ, or empty */
        std::string control;  /* the same of whether it, or a part of it, is run */
        std::string left;     /* the same of where it ends */
        bool is_called = false;
    };

    void order_functions();
    void wait(const function &one);
    void wait_for_callers(const function &one);
    bool is_kept_parameter(const function &in, const clang::ParmVarDecl *parameter) const;
    const std::set<std::string> &targets_of(const function &in, const clang::Expr *pointer) const;
    bool finds_one(const clang::Expr *pointer, std::set<const clang::ParmVarDecl *> seen) const;
    void run(const function &one);
    void step(const function &one, const clang::Stmt *at, differing &now);
    void assign(const function &one, const clang::Expr *to, const std::string &why, bool adds,
                differing &now, bool of_pointer = false) const;
    void mark(const function &one, const std::set<std::string> &objects, const std::string &why,
              differing &now) const;
    const std::vector<std::string> &memory_of(const std::string &object) const;
    using led_parameters = std::vector<std::pair<std::string, const std::set<std::string> *>>;
    const led_parameters &pointer_parameters_of(const function &one) const;
    std::string why_target(const function &one, const clang::Expr *pointer,
                           const differing &now) const;
    std::string why_memory(const function &one, const clang::Expr *pointer,
                           const differing &now) const;
    std::string why_which(const function &one, const clang::Expr *pointer,
                          const differing &now) const;
    std::string why_place(const function &one, const clang::Expr *object,
                          const differing &now) const;
    void initialise(const function &one, const std::string &key, const clang::Expr *value,
                    const std::string &control, differing &now) const;
    void step_call(const function &one, const clang::CallExpr *call, differing &now);
    void step_known(const function &one, const clang::CallExpr *call, const known_call &known,
                    differing &now) const;
    std::string why_input(const function &one, const clang::CallExpr *call, const known_call &known,
                          const differing &now) const;
    using at_blocks = std::map<unsigned, differing>;
    void note_point(const function &one, at_blocks &entries);
    bool ends_program(const function &one, const clang::ReturnStmt *end, unsigned depth = 0) const;
    bool ends_where(const function &in, const clang::CallExpr *call, std::int64_t value,
                    unsigned depth) const;
    bool always_ends(const function &in, const clang::Stmt *branch, unsigned depth) const;
    void note_condition(const function &one, const clang::Stmt *control, const differing &now);
    /* Why the value of @expression may differ; empty if it does not. */
    std::string why(const function &one, const clang::Expr *expression, const differing &now) const;
    std::string why_size(const function &one, const clang::UnaryExprOrTypeTraitExpr *size,
                         const differing &now) const;
    std::string why_length(const function &one, clang::QualType type, const differing &now) const;
    void find_inputs();
    bool may_be_stdin(const clang::Expr *stream) const;
    bool is_file_of_run(const clang::Expr *argument) const;
    std::string why_callback(const clang::CallExpr *call) const;
    void enter_callback(const function &one, const clang::CallExpr *call, const function &callee,
                        const differing &now);
    std::string why_call(const function &one, const clang::CallExpr *call,
                         const differing &now) const;
    /* Why @at may not be run on every rank. */
    std::string why_run(const function &one, const clang::Stmt *at) const;
    /* The same where its function is run; whether that is called is not asked: for what lives no
     * longer than a call does, or is used only behind it. */
    std::string why_run_there(const function &one, const clang::Stmt *at) const;
    bool is_world(const clang::CallExpr *call) const;
    bool leads_to_one(const clang::Expr *pointer, std::set<const clang::ParmVarDecl *> seen) const;
    bool is_fixed_since(const function &in, const clang::Expr *value,
                        clang::SourceLocation place) const;
    bool is_all_of(const function &in, const clang::Expr *count, std::uint64_t bytes,
                   const clang::VarDecl *array) const;
    bool covers(const function &in, const clang::Expr *pointer, const clang::Expr *count,
                std::uint64_t bytes, std::set<const clang::ParmVarDecl *> seen) const;
    bool is_of_one(const clang::Expr *object) const;
    bool fills(const function &in, const clang::CallExpr *call, const known_call &known,
               unsigned number) const;

    bool is_of_call(const std::string &key, const function &one) const;
    static std::vector<std::string> keys_of(const clang::Expr *object, bool *is_whole);
    bool is_field_of_one(const std::string &key) const;
    void count_instances();
    bool may_lead_to_unsized(const function &in, const clang::Expr *pointer);
    bool has_size_of_type(const clang::Expr *value);
    int allocated(const function &in, const clang::Expr *size) const;
    bool is_called_again(const function &in, std::set<const function *> seen) const;
    void find_parts();
    void find_parts_in(const function *in, const clang::Stmt *each);
    void lose_in_call(const clang::CallExpr *call);
    void follow_pointer(const function *in, const clang::Expr *pointer, const std::string &key);
    void define(const assignment &one);
    void define_by(const known_call &known, const clang::CallExpr *call, const std::string &key);
    void join(const std::string &one, const std::string &other);
    void lose(const clang::ASTContext &context, clang::QualType type);
    bool may_be_part(const clang::Expr *communicator) const;

    const program &program_;
    const call_graph &calls_;
    const accesses &used_;
    const between what_;
    const std::vector<assignment> &assignments_;
    const pointers &pointers_;
    std::map<std::string, function_state> states_;
    std::map<const clang::Stmt *, std::string> conditions_;
    std::map<std::string, int> instances_; /* of structs, by name */
    std::set<std::string> statics_;        /* variables of functions, by key */
    std::set<const function *> recursive_;
    std::set<std::string> inputs_;  /* streams that may be stdin, by key */
    std::set<std::string> unsized_; /* blocks whose size says no type */
    bool has_found_unsized_ = false;
    std::map<std::string, std::vector<const clang::Expr *>> values_; /* that each key is given */
    std::map<std::string, bool> sized_; /* whether these have a sizeof */
    /* Communicators, by key: that may be of some ranks only, and that are given a value. */
    std::set<std::string> parts_, defined_;
    const loop *const at_;
    differing at_point_; /* what differs there */
    bool is_defining_ = false;
    /* To be run again, callers first. */
    std::map<const function *, std::size_t> order_;
    std::map<std::size_t, const function *, std::greater<>> waiting_;
    std::size_t rounds_ = 0;
    mutable std::map<std::pair<const function *, const clang::ParmVarDecl *>, bool> kept_;
    mutable std::map<const clang::Expr *, bool> to_one_;
    mutable std::unordered_map<std::string, std::vector<std::string>> memory_;
    mutable std::unordered_map<const function *, led_parameters> parameters_;
    mutable std::map<const clang::Expr *, std::set<std::string>> targets_;
};

} // namespace zc::instrument
