/* SPDX-License-Identifier: BSD-3-Clause */
#include "rewriting.h"

#include "runtime_text.h"

#include <algorithm>
#include <clang/Lex/Lexer.h>
#include <clang/Rewrite/Core/Rewriter.h>
#include <filesystem>
#include <fmt/format.h>
#include <regex>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;
using llvm::isa_and_nonnull;

namespace {

constexpr const char *kMark = "/* zcm-instrument */";

std::string identifier(std::string name)
{
    for (char &c : name)
        if (!std::isalnum(static_cast<unsigned char>(c)))
            c = '_';
    return name;
}

/* Offset behind the last #include that no #if decides about. */
std::size_t behind_includes(const std::string &text)
{
    static const std::regex directive(R"(^[ \t]*#[ \t]*(\w+).*$)");
    std::size_t found = 0, begin = 0;
    int depth = 0;
    while (begin < text.size()) {
        std::size_t end = text.find('\n', begin);
        end = end == std::string::npos ? text.size() : end + 1;
        const std::string line =
            text.substr(begin, text.find_last_not_of("\r\n", end - 1) + 1 - begin);
        std::smatch word;
        if (std::regex_match(line, word, directive)) {
            if (word[1].str().substr(0, 2) == "if")
                depth++;
            else if (word[1] == "endif")
                depth--;
            else if (word[1] == "include" && depth == 0)
                found = end;
        }
        begin = end;
    }
    return found;
}

class unit_rewriter {
  public:
    unit_rewriter(const clang::ASTUnit &unit, const program &all, const loop &at, const state &of,
                  rewritten &result)
        : context_(const_cast<clang::ASTUnit &>(unit).getASTContext()), program_(all), loop_(at),
          state_(of), result_(result),
          rewriter_(context_.getSourceManager(), context_.getLangOpts())
    {
    }

    /* The function that says where the static data is, or an empty string. */
    std::string run()
    {
        for (const auto &[name, one] : program_.functions())
            if (&one.context() == &context_)
                look_at(one);
        for (std::size_t i = 0; i < loop_.way.size(); i++)
            if (&loop_.way[i].in->context() == &context_)
                loop_.way[i].call ? name_locals(i) : put_safe_point(i);
        for (const auto *variable : state_.no_longer_const)
            if (&variable->getASTContext() == &context_)
                drop_const(variable);
        for (const auto &one : state_.roots)
            if (&one.variable->getASTContext() == &context_)
                begin_as_zero(one.variable);
        const std::string function = name_statics();
        finish();
        return function;
    }

  private:
    bool is_here(clang::SourceLocation at, const clang::Stmt *what)
    {
        if (at.isValid() && at.isFileID() && context_.getSourceManager().isInMainFile(at))
            return true;
        result_.refused.push_back({place_of(context_, what->getBeginLoc()),
                                   "is written by a macro or stands in a header, and cannot be "
                                   "changed there"});
        return false;
    }

    void look_at(const function &one)
    {
        for_each_statement(one.decl->getBody(), [this](const clang::Stmt *each) {
            if (const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each))
                rename(reference);
            if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each)) {
                begin_with(call);
                keep_buffer(call);
            }
        });
    }

    void rename(const clang::DeclRefExpr *reference)
    {
        const auto *callee = dyn_cast<clang::FunctionDecl>(reference->getDecl());
        if (!callee || program_.find(callee))
            return;
        const std::string name = callee->getNameAsString();
        const auto *known = find_known(name);
        if (name != "free" && (!known || known->what != known_call::kind::allocates))
            return;
        /* In a macro its name is changed, once, where the macro is defined. */
        const auto at = context_.getSourceManager().getSpellingLoc(reference->getLocation());
        if (!is_here(at, reference) || !renamed_.insert(at).second)
            return;
        rewriter_.ReplaceText(at, static_cast<unsigned>(name.size()), "zcm_state_" + name);
    }

    void begin_with(const clang::CallExpr *call)
    {
        const auto *callee = callee_of(call);
        const std::string name = callee ? callee->getNameAsString() : "";
        if ((name != "MPI_Init" && name != "MPI_Init_thread") || program_.find(callee))
            return;
        const auto &sources = context_.getSourceManager();
        const auto begin = sources.getSpellingLoc(call->getBeginLoc());
        const auto end = sources.getSpellingLoc(call->getEndLoc());
        if (!is_here(begin, call) || !is_here(end, call))
            return;
        rewriter_.InsertTextBefore(begin, "zcm_state_init(");
        rewriter_.InsertTextAfterToken(end, ")");
    }

    /* What a persistent request sends is read by no name of the program. Variables whose address is
     * taken are saved anyway. */
    void keep_buffer(const clang::CallExpr *call)
    {
        const auto *callee = callee_of(call);
        const auto *known =
            callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
        bool is_made = false;
        for (unsigned i = 0; known && i < call->getNumArgs(); i++)
            is_made |= known->effect(i) == 'P';
        const auto *buffer = is_made ? call->getArg(0)->IgnoreParenImpCasts() : nullptr;
        if (!buffer || !buffer->getType()->isPointerType() ||
            buffer->isNullPointerConstant(context_, clang::Expr::NPC_ValueDependentIsNotNull))
            return;
        const auto &sources = context_.getSourceManager();
        const auto begin = sources.getSpellingLoc(call->getArg(0)->getBeginLoc());
        const auto end = sources.getSpellingLoc(call->getArg(0)->getEndLoc());
        if (!is_here(begin, call) || !is_here(end, call) || !buffers_.insert(begin).second)
            return;
        rewriter_.InsertTextBefore(begin, "zcm_state_buffer(");
        rewriter_.InsertTextAfterToken(end, ")");
    }

    /* @before and @behind each call. */
    std::string locals_of(std::size_t frame, const std::string &before,
                          const std::string &behind = ";\n") const
    {
        std::string text;
        for (std::size_t i = 0; i < state_.roots.size(); i++) {
            const auto &one = state_.roots[i];
            const auto name = one.variable->getNameAsString();
            if (one.is_local && one.frame == frame)
                text += fmt::format("{}zcm_state_local({}, &{}, sizeof {}){}", before, i, name,
                                    name, behind);
        }
        const auto *main = frame == 0 ? loop_.way.front().in->decl : nullptr;
        if (main && main->getNumParams() > 1 && leads_to_memory() &&
            !main->getParamDecl(1)->getName().empty())
            text += fmt::format("{}zcm_state_arguments({}){}", before,
                                main->getParamDecl(1)->getNameAsString(), behind);
        return text;
    }

    bool leads_to_memory() const
    {
        return std::any_of(state_.roots.begin(), state_.roots.end(), [this](const auto &one) {
            return state_.types.has_pointers(one.layout);
        });
    }

    std::string indent_at(clang::SourceLocation at) const
    {
        const auto &sources = context_.getSourceManager();
        const auto buffer = sources.getBufferData(sources.getFileID(at));
        const auto offset = sources.getFileOffset(at);
        const auto line = buffer.rfind('\n', offset == 0 ? 0 : offset - 1);
        const auto begin = line == llvm::StringRef::npos ? 0 : line + 1;
        auto end = begin;
        while (end < buffer.size() && (buffer[end] == ' ' || buffer[end] == '\t'))
            end++;
        return buffer.substr(begin, end - begin).str();
    }

    void put_safe_point(std::size_t frame)
    {
        const auto *body = body_of(loop_.statement);
        const std::string indent = indent_at(loop_.statement->getBeginLoc()) + "    ";
        std::string text = fmt::format("\n{}{}\n", indent, kMark) + locals_of(frame, indent);
        text += indent + "zcm_state_ready();\n" + indent + "if (zcm_safe_point() != 0)\n" + indent +
                "    MPI_Abort(MPI_COMM_WORLD, 1);\n";
        if (!is_here(body->getBeginLoc(), body))
            return;
        if (isa<clang::CompoundStmt>(body))
            rewriter_.InsertTextAfterToken(body->getBeginLoc(), text);
        else
            wrap(body, "{" + text + indent, "\n" + indent_at(loop_.statement->getBeginLoc()) + "}");
    }

    /* A statement that is the whole body of another one. */
    void wrap(const clang::Stmt *statement, const std::string &before, const std::string &behind)
    {
        auto end = statement->getEndLoc();
        if (isa<clang::Expr, clang::ReturnStmt, clang::DoStmt>(statement)) {
            end = clang::Lexer::findLocationAfterToken(
                end, clang::tok::semi, context_.getSourceManager(), context_.getLangOpts(), false);
            if (!is_here(end, statement))
                return;
            rewriter_.InsertTextBefore(end, behind);
        } else if (is_here(end, statement)) {
            rewriter_.InsertTextAfterToken(end, behind);
        }
        rewriter_.InsertTextBefore(statement->getBeginLoc(), before);
    }

    /* What is saved before the program has given it a value is the same in each run. */
    void begin_as_zero(const clang::VarDecl *variable)
    {
        const auto end = variable->getEndLoc();
        if (!variable->hasLocalStorage() || variable->hasInit() ||
            isa<clang::ParmVarDecl>(variable) || variable->getType()->isVariableArrayType() ||
            !end.isFileID() || !variable->getBeginLoc().isFileID())
            return;
        const bool is_scalar = variable->getType()->isScalarType();
        rewriter_.InsertTextAfterToken(end, is_scalar ? " = 0" : " = {0}");
    }

    /* It is restored, which a compiler need not expect of what is const. Of a pointer that is the
     * word behind its last star, of anything else the first one. */
    void drop_const(const clang::VarDecl *variable)
    {
        auto &sources = context_.getSourceManager();
        const bool is_pointer = layouts::element_of(context_, variable->getType())->isPointerType();
        clang::SourceLocation word;
        for (auto at = variable->getBeginLoc(); at.isValid() && at.isFileID();) {
            clang::Token token;
            if (clang::Lexer::getRawToken(at, token, sources, context_.getLangOpts(), true) ||
                !sources.isBeforeInTranslationUnit(token.getLocation(), variable->getLocation()))
                break;
            if (is_pointer && token.is(clang::tok::star))
                word = {};
            if (token.is(clang::tok::raw_identifier) && token.getRawIdentifier() == "const" &&
                (is_pointer || word.isInvalid()))
                word = token.getLocation();
            at = token.getEndLoc();
        }
        if (word.isInvalid() || (is_pointer && !is_behind_star(word, variable)))
            result_.refused.push_back({place_of(context_, variable->getLocation()),
                                       "'" + variable->getNameAsString() +
                                           "' is const, and may have another value than a "
                                           "successor gives it"});
        else if (unconst_.insert(word).second)
            rewriter_.ReplaceText(word, 5, "");
    }

    /* Is there a star between the beginning of @variable's declaration and @word? */
    bool is_behind_star(clang::SourceLocation word, const clang::VarDecl *variable) const
    {
        const auto text = clang::Lexer::getSourceText(
            clang::CharSourceRange::getCharRange(variable->getBeginLoc(), word),
            context_.getSourceManager(), context_.getLangOpts());
        return text.contains('*');
    }

    /* On a line before the call where that is a statement, or the body of one, in front of it in
     * the expression otherwise. */
    void name_locals(std::size_t frame)
    {
        const auto &[in, call] = loop_.way[frame];
        const clang::Stmt *statement = call;
        const auto *parent = in->parents->getParent(statement);
        while (parent && isa<clang::Expr>(parent)) {
            statement = parent;
            parent = in->parents->getParent(statement);
        }
        if (isa_and_nonnull<clang::ReturnStmt>(parent)) {
            statement = parent;
            parent = in->parents->getParent(statement);
        }
        const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(parent);
        if (declaration && declaration->isSingleDecl()) {
            statement = parent;
            parent = in->parents->getParent(statement);
        }
        if (isa_and_nonnull<clang::CompoundStmt>(parent) && statement->getBeginLoc().isFileID()) {
            const auto indent = indent_at(statement->getBeginLoc());
            const auto text = locals_of(frame, indent);
            if (!text.empty() && is_here(statement->getBeginLoc(), statement))
                rewriter_.InsertTextBefore(statement->getBeginLoc(),
                                           fmt::format("{}\n{}{}", kMark, text, indent));
            return;
        }
        const auto *choice = dyn_cast_or_null<clang::IfStmt>(parent);
        const bool is_body = choice
                                 ? choice->getThen() == statement || choice->getElse() == statement
                                 : parent && body_of(parent) == statement;
        if (is_body && statement->getBeginLoc().isFileID()) {
            const auto indent = indent_at(statement->getBeginLoc());
            if (const auto text = locals_of(frame, indent); !text.empty())
                wrap(statement, fmt::format("{{ {}\n{}{}", kMark, text, indent),
                     "\n" + indent + "}");
            return;
        }
        const auto text = locals_of(frame, "", ", ");
        const auto &sources = context_.getSourceManager();
        const auto place = [&](clang::SourceLocation at) {
            return sources.isMacroArgExpansion(at) ? sources.getSpellingLoc(at) : at;
        };
        const auto begin = place(call->getBeginLoc()), end = place(call->getEndLoc());
        if (text.empty() || !is_here(begin, call) || !is_here(end, call))
            return;
        rewriter_.InsertTextBefore(begin, fmt::format("({} {}", kMark, text));
        rewriter_.InsertTextAfterToken(end, ")");
    }

    /* A static variable of a function becomes one of the file, before the function, so that it can
     * be restored where the function has not been called yet. Its new name, or an empty one. */
    std::string move_out(const clang::VarDecl *variable)
    {
        const auto *one =
            program_.find(llvm::cast<clang::FunctionDecl>(variable->getParentFunctionOrMethod()));
        const clang::DeclStmt *declaration = nullptr;
        for_each_statement(one->decl->getBody(), [&](const clang::Stmt *each) {
            const auto *found = dyn_cast_or_null<clang::DeclStmt>(each);
            if (found && found->isSingleDecl() && found->getSingleDecl() == variable)
                declaration = found;
        });
        const auto *record = variable->getType()->getAsRecordDecl();
        if (!declaration || (record && record->getParentFunctionOrMethod())) {
            result_.refused.push_back(
                {place_of(context_, variable->getLocation()),
                 "'" + variable->getNameAsString() +
                     "', which is live at the safe point, is static in a function, and is declared "
                     "together with another one or of a type of the function's own"});
            return {};
        }
        if (!is_here(declaration->getBeginLoc(), declaration) ||
            !is_here(declaration->getEndLoc(), declaration))
            return {};
        const auto old = variable->getNameAsString(),
                   made = one->decl->getNameAsString() + "_" + old;
        const auto begin = declaration->getBeginLoc(), at = variable->getLocation();
        const auto text = clang::Lexer::getSourceText(
            clang::CharSourceRange::getTokenRange(begin, declaration->getEndLoc()),
            context_.getSourceManager(), context_.getLangOpts());
        const auto offset = context_.getSourceManager().getFileOffset(at) -
                            context_.getSourceManager().getFileOffset(begin);
        rewriter_.InsertTextBefore(
            one->decl->getBeginLoc(),
            (text.substr(0, offset) + made + text.substr(offset + old.size())).str() + " " + kMark +
                "\n\n");
        rewriter_.ReplaceText(begin, static_cast<unsigned>(text.size()), ";");
        for_each_statement(one->decl->getBody(), [&](const clang::Stmt *each) {
            const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
            if (reference && reference->getDecl() == variable &&
                is_here(reference->getLocation(), reference))
                rewriter_.ReplaceText(reference->getLocation(), static_cast<unsigned>(old.size()),
                                      made);
        });
        return made;
    }

    std::string name_statics()
    {
        const auto &sources = context_.getSourceManager();
        std::string text;
        for (std::size_t i = 0; i < state_.roots.size(); i++) {
            const auto &one = state_.roots[i];
            if (one.is_local || &one.variable->getASTContext() != &context_)
                continue;
            auto name = one.variable->getNameAsString();
            if (one.variable->isStaticLocal()) {
                name = move_out(one.variable);
                if (name.empty())
                    continue;
            }
            text += fmt::format("    zcm_state_local({}, &{}, sizeof {});\n", i, name, name);
        }
        if (text.empty())
            return {};
        const auto file = sources.getFileEntryForID(sources.getMainFileID())->getName().str();
        const auto function = "zcm_state_of_" + identifier(std::filesystem::path(file).filename());
        appended_ = fmt::format("\n{} /* where the live data of this file is */\n"
                                "void {}(void);\nvoid {}(void)\n{{\n{}}}\n",
                                kMark, function, function, text);
        return function;
    }

    void finish()
    {
        auto &sources = context_.getSourceManager();
        const auto main = sources.getMainFileID();
        const std::string original = sources.getBufferData(main).str();
        const auto *buffer = rewriter_.getRewriteBufferFor(main);
        if (!buffer && appended_.empty())
            return; /* nothing in it concerns the safe point */
        rewriter_.InsertTextBefore(sources.getLocForStartOfFile(main).getLocWithOffset(
                                       static_cast<int>(behind_includes(original))),
                                   fmt::format("#include \"zcm_state.h\" {}\n", kMark));
        std::string text;
        llvm::raw_string_ostream out(text);
        rewriter_.getEditBuffer(main).write(out);
        out.flush();
        result_.sources[sources.getFileEntryForID(main)->getName().str()] = text + appended_;
    }

    clang::ASTContext &context_;
    const program &program_;
    const loop &loop_;
    const state &state_;
    rewritten &result_;
    clang::Rewriter rewriter_;
    std::set<clang::SourceLocation> renamed_, unconst_, buffers_;
    std::string appended_;
};

const char *kind_name(field::kind what)
{
    switch (what) {
    case field::kind::basic:
        return "BASIC";
    case field::kind::record:
        return "RECORD";
    case field::kind::pointer:
        return "POINTER";
    case field::kind::handle:
        return "HANDLE";
    case field::kind::request:
        return "REQUEST";
    }
    return "";
}

std::string tables(const state &of, const std::vector<std::string> &units)
{
    std::string text = "/* ---- what zcm-instrument found in this program ---- */\n\n", all;
    const auto &types = of.types.all();
    for (std::size_t i = 0; i < types.size(); i++) {
        text +=
            fmt::format("static const struct field fields_{}[] = {{ /* {} */\n", i, types[i].name);
        for (const auto &one : types[i].fields)
            text += fmt::format(
                "    {{{}, {}, {}, {}, {}}},\n", one.offset, one.count, kind_name(one.what),
                one.what == field::kind::basic ? one.type : std::to_string(one.of), one.size);
        if (types[i].fields.empty())
            text += "    {0, 0, HANDLE, -1, 0},\n";
        text += "};\n";
        all += fmt::format("    {{\"{}\", {}, fields_{}, {}, {:d}, {:d}}},\n", types[i].name,
                           std::max<std::uint64_t>(1, types[i].size), i, types[i].fields.size(),
                           of.types.has_pointers(static_cast<int>(i)),
                           of.types.is_saved(static_cast<int>(i)));
    }
    text +=
        "static const struct layout layouts[] = {\n" + all + "};\nstatic struct root roots[] = {\n";
    for (const auto &one : of.roots)
        text += fmt::format("    {{\"{}\", {}, NULL, 0, NULL, 0}}, /* {} */\n", one.name,
                            one.layout, one.type);
    if (of.roots.empty())
        text += "    {\"\", 0, NULL, 0, NULL, 0},\n";
    text += fmt::format("}};\nenum {{ nr_layouts = {}, nr_roots = {} }};\n\n", types.size(),
                        of.roots.size());
    for (const auto &unit : units)
        text += fmt::format("void {}(void);\n", unit);
    text += "static void find_statics(void)\n{\n";
    for (const auto &unit : units)
        text += fmt::format("    {}();\n", unit);
    return text + "}\n";
}

} // namespace

std::string state_source(const state &of, const std::vector<std::string> &units)
{
    static const std::string mark = "/* @TABLES@";
    std::string text = kStateC;
    const auto begin = text.find(mark);
    const auto end = text.find('\n', begin) + 1;
    return text.replace(begin, end - begin, tables(of, units));
}

rewritten rewrite(const program &all, const loop &at, const state &of)
{
    rewritten result;
    std::vector<std::string> units;
    for (const auto &unit : all.units()) {
        const auto function = unit_rewriter(*unit, all, at, of, result).run();
        if (!function.empty())
            units.push_back(function);
    }
    result.state_h = kStateH;
    result.state_c = state_source(of, units);
    std::sort(result.refused.begin(), result.refused.end());
    result.refused.erase(std::unique(result.refused.begin(), result.refused.end()),
                         result.refused.end());
    return result;
}

} // namespace zc::instrument
