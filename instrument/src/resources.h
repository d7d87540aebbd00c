/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "findings.h"
#include "loops.h"

namespace zc::instrument {

/**
 * The communication analysis: what may be open where a safe point would lie. Requests, files and
 * windows, each by the variable or field that holds it, and by the index of an array if that is a
 * number. It follows the flow of each function; calls have the effect of the function called.
 *
 * A request that is waited for on every path is closed; MPI_Waitall() closes all of the array that
 * it is given. What a wait with an index that is not a number completes, and what MPI_Test() and
 * MPI_Waitany() do, is not decided: the request stays open.
 */
class resources {
  public:
    explicit resources(const program &all);

    /** What may be open where the body of @one begins, with the place where it was opened. */
    findings open_at(const loop &one) const;
    /** Variables and fields that hold persistent requests, or lead to them, by key. */
    const std::set<std::string> &persistent() const { return persistent_; }
    /** Variables and fields, by key, that are never anything but stdout, stderr, or NULL. */
    const std::set<std::string> &streams() const { return streams_; }
    /** A FILE *? */
    static bool is_stream(clang::QualType type);
    /** The variable or field that @argument is, or leads into; "?" if that is not known. @index:
     * set to that of an array, if there is one. */
    static std::string base_of(const function &in, const clang::Expr *argument, std::string *index);
    /** Types of what @pointer leads to, before it was cast; of an array, its own. */
    static std::vector<clang::QualType> pointees_of(const clang::Expr *pointer);

  private:
    /* What may be open: the key, "[3]" behind it if an element is known; and where it was opened.
     */
    using open_set = std::map<std::string, finding>;
    struct summary {
        open_set opens;               /* that is open at its end, if nothing was */
        std::set<std::string> closes; /* on every path */
    };

    static void close_unless_standard(const function &in, const clang::Stmt *at, open_set &open);
    void step(const function &in, const clang::Stmt *at, open_set &open) const;
    void call_own(const function &in, const clang::CallExpr *call, const function &callee,
                  open_set &open) const;
    void call_known(const function &in, const clang::CallExpr *call, const known_call &callee,
                    open_set &open) const;
    std::map<unsigned, open_set> at_entries(const function &in, const open_set &first) const;
    summary summarise(const function &one) const;
    void find_persistent();
    void find_streams();
    void find_escaping_streams(const function &in, const clang::Stmt *each,
                               std::set<std::string> &others) const;
    void add_streams_of(clang::QualType type, std::set<std::string> &to) const;
    bool is_standard(const function &in, const clang::Expr *value,
                     const std::set<std::string> &others) const;

    const program &program_;
    std::map<std::string, summary> summaries_;
    std::set<std::string> persistent_, streams_;
};

} // namespace zc::instrument
