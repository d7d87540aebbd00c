/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "assignments.h"

namespace zc::instrument {

/**
 * What pointers may lead to, by key: variables, fields, and blocks, which are called by the place
 * of the call that allocates them. It follows all that is assigned to a pointer, whatever the
 * order. A field is one of all structs of its type. One that is not followed (a member of a union,
 * an argument by va_arg(), what a function that is not known returns) may lead to all whose address
 * is kept somewhere.
 */
class pointers {
  public:
    pointers(const program &all, const std::vector<assignment> &assignments, const accesses &used);

    /** What @pointer may lead to. An array leads to itself. */
    std::set<std::string> targets_of(const function &in, const clang::Expr *pointer) const;
    /** What @object, of which something may be a part, is. */
    std::set<std::string> objects_of(const function &in, const clang::Expr *object) const;
    /** What the pointer variable or field @key may lead to. */
    const std::set<std::string> &targets_of(const std::string &key) const;
    /** @some, and the fields of those that are structs. */
    std::set<std::string> with_fields(const std::set<std::string> &keys) const;

    /** May a pointer that is kept somewhere, or is an argument, lead to @key? */
    bool is_led_to(const std::string &key) const { return led_to_.count(key) > 0; }

    /** @key, and the fields that may be memory of it, too. */
    std::set<std::string> of_same_memory(const std::string &key) const;

    /** All that are named. */
    const std::map<std::string, const clang::FieldDecl *> &fields() const { return fields_; }

  private:
    using keys = std::set<std::string>;

    void share(const keys &fields);
    void note_types();
    void note_statement(const function *in, const clang::Stmt *each);
    void note_type(const clang::ValueDecl *decl);
    void note_address(const function *in, const clang::Expr *address, const clang::Expr *object);
    void look_at_cast(const function &in, const clang::CastExpr *cast);
    void look_at_block(const std::string &key, clang::QualType as);
    bool is_of_wrapper(const std::string &key) const;
    keys found_of(const function &in, const clang::Expr *pointer) const;
    keys found_objects_of(const function &in, const clang::Expr *object) const;
    const keys &raw_targets_of(const std::string &key) const;
    keys fields_of(const keys &objects, const std::vector<clang::QualType> &types) const;
    keys value_of(const keys &objects) const;
    keys all_of(const keys &found) const;
    clang::QualType type_of(const std::string &key) const;
    void look_at_call(const function &in, const clang::CallExpr *call);
    void set(const assignment &one);
    void add(const std::string &key, const std::set<std::string> &targets);
    keys results_of(const function &in, const clang::CallExpr *call) const;

    const program &program_;
    std::map<std::string, std::set<std::string>> targets_;
    std::map<std::string, clang::QualType> types_; /* of variables, fields and literals */
    std::map<std::string, const clang::FieldDecl *> fields_;
    std::vector<std::pair<const function *, const clang::CallExpr *>> calls_;
    std::vector<std::pair<const function *, const clang::CastExpr *>> casts_;
    keys anything_; /* whose address is kept */
    keys shared_;   /* fields that are memory of others, too */
    std::map<std::string, std::string>
        group_of_; /* of these, a name of all that are of one memory */
    std::map<std::string, keys> groups_;
    std::map<std::string, keys> views_; /* what is no struct, and fields that it is used as */
    keys led_to_;                       /* by any pointer */
    struct block_use {
        std::map<const clang::RecordDecl *, keys> structs; /* and their fields */
        bool is_plain = false;                             /* as numbers, too */
    };
    std::map<std::string, block_use> blocks_; /* what each is used as by way of void * */
    bool grows_ = false;
};

} // namespace zc::instrument
