/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "assignments.h"

namespace zc::instrument {

/**
 * What pointers may lead to, by key: variables, fields, and blocks, which are called by the place
 * of the call that allocates them. It follows all that is assigned to a pointer, whatever the
 * order. A field is one of all structs of its type.
 */
class pointers {
  public:
    pointers(const program &all, const std::vector<assignment> &assignments);

    /** What @pointer may lead to. An array leads to itself. */
    std::set<std::string> targets_of(const function &in, const clang::Expr *pointer) const;
    /** What @object, of which something may be a part, is. */
    std::set<std::string> objects_of(const function &in, const clang::Expr *object) const;
    /** What the pointer variable or field @key may lead to. */
    const std::set<std::string> &targets_of(const std::string &key) const;
    /** @keys, and the fields of those that are structs. */
    std::set<std::string> with_fields(const std::set<std::string> &keys) const;

  private:
    void note_types();
    void look_at_call(const function &in, const clang::CallExpr *call);
    void set(const assignment &one);
    void add(const std::string &key, const std::set<std::string> &targets);
    std::set<std::string> results_of(const function &in, const clang::CallExpr *call) const;

    const program &program_;
    std::map<std::string, std::set<std::string>> targets_;
    std::map<std::string, clang::QualType> types_; /* of variables and fields */
    bool grows_ = false;
};

} // namespace zc::instrument
