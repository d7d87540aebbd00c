/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "findings.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ParentMap.h>
#include <clang/Analysis/CFG.h>
#include <clang/Frontend/ASTUnit.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace zc::instrument {

/** FILE:LINE of @at, the file by its last name. */
std::string place_of(const clang::ASTContext &context, clang::SourceLocation at);

/** A function with a body. */
struct function {
    std::string name; /* unique in the program: "file.c:name" if static */
    const clang::FunctionDecl *decl = nullptr;
    std::unique_ptr<clang::ParentMap> parents;
    std::unique_ptr<clang::CFG> cfg;

    clang::ASTContext &context() const { return decl->getASTContext(); }
    std::string place(const clang::Stmt *at) const
    {
        return place_of(context(), at->getBeginLoc());
    }
};

/**
 * All sources of a program, parsed. Variables, fields and functions of several sources are the same
 * if their keys are:
 *
 *     x                 a variable with external linkage
 *     file.c:x          one of file scope
 *     main:x@12         a local one or a parameter, by the line of its declaration
 *     struct grid.nx    a field
 */
class program {
  public:
    explicit program(std::vector<std::unique_ptr<clang::ASTUnit>> units);
    ~program();
    program(const program &) = delete;
    program &operator=(const program &) = delete;

    const std::vector<std::unique_ptr<clang::ASTUnit>> &units() const { return units_; }
    const std::map<std::string, function> &functions() const { return functions_; }
    /** Variables of file scope that are defined here, by key. */
    const std::map<std::string, const clang::VarDecl *> &globals() const { return globals_; }

    /** Names that are of two things here: two sources, or what each of two sources has of its own.
     */
    const findings &clashes() const { return clashes_; }

    /** nullptr: not one of the program's. */
    const function *find(const clang::FunctionDecl *decl) const;
    const function *find(const std::string &name) const;
    /**
     * What completes the struct or union @decl, in its own source or in another one. nullptr: none
     * does, or several do in different ways.
     */
    const clang::RecordDecl *definition_of(const clang::RecordDecl *decl) const;
    /** Is it another type in another source? */
    bool has_other_definitions(const clang::RecordDecl *decl) const;
    static const std::string &key(const clang::VarDecl *variable);
    static const std::string &key(const clang::FieldDecl *field);
    static const std::string &key(const clang::FunctionDecl *decl);

    /** What called_by() has found. */
    std::unordered_map<const clang::CallExpr *, std::vector<const function *>> &calls() const
    {
        return calls_;
    }

  private:
    void find_clashes(clang::ASTUnit &unit);

    std::vector<std::unique_ptr<clang::ASTUnit>> units_;
    findings clashes_;
    std::map<std::string, function> functions_;
    std::map<std::string, const clang::VarDecl *> globals_;
    std::map<std::string, std::vector<const clang::RecordDecl *>> definitions_; /* by name */
    mutable std::map<std::string, bool> differing_;
    mutable std::unordered_map<const clang::FunctionDecl *, const function *> found_;
    mutable std::unordered_map<const clang::CallExpr *, std::vector<const function *>> calls_;
};

/** The function that @call names, or nullptr: it is called by a pointer. */
const clang::FunctionDecl *callee_of(const clang::CallExpr *call);

/** Of the variable or field that @object is, or whose element it is if that is an array. Empty: of
 * what a pointer leads to. */
std::string key_of_object(const clang::Expr *object);

/** Adds the keys of all fields of @record, and of the structs in it. */
void add_fields(const clang::RecordDecl *record, std::set<std::string> &to);

/** Calls @visit(statement) for @root and all statements below, parents first. */
template <typename Visit>
void for_each_statement(const clang::Stmt *root, Visit visit)
{
    if (!root)
        return;
    visit(root);
    for (const clang::Stmt *child : root->children())
        for_each_statement(child, visit);
}

/** Calls @visit(statement) for all statements in the initial values of variables of file scope. */
template <typename Visit>
void for_each_initial_statement(const program &all, Visit visit)
{
    for (const auto &[key, variable] : all.globals())
        for_each_statement(variable->getInit(), [&](const clang::Stmt *each) {
            if (each)
                visit(each);
        });
}

/** Calls @visit(function, statement) for all statements of all functions, parents first. */
template <typename Visit>
void for_each_statement(const program &all, Visit visit)
{
    for (const auto &[name, one] : all.functions())
        for_each_statement(one.decl->getBody(),
                           [&, in = &one](const clang::Stmt *each) { visit(in, each); });
}

} // namespace zc::instrument
