/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "known_calls.h"
#include "program.h"

namespace zc::instrument {

/** What happens to memory by way of an expression. */
struct effect {
    bool reads = false, writes = false;
    bool escapes = false; /* its address is kept, or goes where this analysis does not follow */

    effect &operator|=(const effect &other)
    {
        reads |= other.reads;
        writes |= other.writes;
        escapes |= other.escapes;
        return *this;
    }
};

/** A place in a function where a variable is named. */
struct access {
    std::string key;
    const clang::VarDecl *variable;
    const clang::DeclRefExpr *at;
    effect what;
    const clang::Stmt *defines =
        nullptr; /* what gives the whole variable a new value, if it does */
};

/**
 * What each function does with variables, and with the memory that its parameters point to. Of a
 * function of the program this comes from its body, of others from the table of known calls; a
 * pointer that goes anywhere else escapes.
 */
class accesses {
  public:
    explicit accesses(const program &all);

    const std::vector<access> &of(const function &one) const { return by_function_.at(one.name); }
    /** Variables whose address is kept somewhere. */
    const std::set<std::string> &escaping() const { return escaping_; }
    /** Of argument @number of @call, if that is a pointer. */
    effect of_argument(const clang::CallExpr *call, unsigned number) const;

  private:
    struct use {
        effect what;
        const clang::Stmt *defines = nullptr;
    };
    use of_object(const function &in, const clang::Expr *object, bool whole) const;
    use of_pointer(const function &in, const clang::Expr *pointer, bool whole) const;
    use of_pointer_in_operator(const function &in, const clang::BinaryOperator *parent,
                               const clang::Expr *pointer) const;
    use of_object_in_operator(const function &in, const clang::Stmt *parent,
                              const clang::Expr *object, bool whole) const;
    use of_call(const function &in, const clang::CallExpr *call, const clang::Expr *pointer,
                bool whole) const;
    effect of_parameter(const function &one, unsigned number) const;
    void find_kept_in_place();
    bool may_be_in_place(const clang::Expr *buffer) const;

    const program &program_;
    bool keeps_in_place_ = false;
    std::map<std::string, std::vector<access>> by_function_;
    std::set<std::string> escaping_;
    mutable std::map<const clang::ParmVarDecl *, effect> parameters_;
};

} // namespace zc::instrument
