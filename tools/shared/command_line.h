// SPDX-License-Identifier: BSD-3-Clause
// The command line of a program: sub-commands, options and what they accept. CLI11 parses it, with
// its names and its meaning. Only command_line.cc sees CLI11, because each file that does takes six
// seconds more to compile. Used by `ulc`, `ulc-sim` and the applications under bench/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ulc::tools {

/// An option that was added to a Command. A handle: the command owns the option. Functions return
/// the same option, so that calls chain.
class Option {
public:
    explicit Option(CLI::Option* option) : option_(option) {}

    const Option& required() const;
    /// Accepts low … high. `Number`: int, unsigned, std::uint64_t or double.
    template <typename Number>
    const Option& range(Number low, Number high) const;
    const Option& one_of(std::vector<std::string> words) const;
    /// Accepts a time with its unit, from `low` to `high`, and 0 if `or_none`. The value, a double,
    /// is in `unit`, which a number without a unit has too.
    const Option& time(Nanos unit, Nanos low, Nanos high, bool or_none = false) const;
    /// Accepts a rate with its unit. The value is in bits a second.
    const Option& rate(std::uint64_t low, std::uint64_t high) const;
    /// `fault` returns what is wrong with a word, or nothing.
    const Option& check(std::function<std::string(const std::string&)> fault) const;
    /// The heading of --help under which the option stands.
    const Option& group(const std::string& heading) const;
    const Option& excludes(const Option& other) const;
    const Option& needs(const Option& other) const;
    const Option& allow_extra_args(bool allowed) const;
    const Option& expected(int least, int most) const;
    const Option& type_name(const std::string& name) const;
    const Option& trigger_on_parse() const;
    const Option& delimiter(char separator) const;
    /// --help shows the value that the variable has at this call.
    const Option& capture_default_str() const;

private:
    CLI::Option* option_;
};

/// A sub-command, or the program itself. A handle: the CommandLine owns its commands.
class Command {
public:
    explicit Command(CLI::App* app) : app_(app) {}

    Command add_subcommand(const std::string& name, const std::string& description);
    /// `value` is what the option writes; it must outlive the parsing. The types are those that
    /// command_line.cc lists.
    template <typename Value>
    Option add_option(const std::string& names, Value& value, const std::string& description = "");
    Option add_option_function(const std::string& names,
                               const std::function<void(const std::string&)>& take,
                               const std::string& description);
    Option add_flag(const std::string& names, bool& value, const std::string& description);
    /// The option must exist.
    [[nodiscard]] Option get_option(const std::string& name) const;

    void footer(const std::string& text);
    /// `run` is called once the whole command line was understood, if it names this command.
    void callback(std::function<void()> run);
    /// Leaves all from the first word that is no option to another program: remaining().
    void prefix_command();
    [[nodiscard]] std::vector<std::string> remaining() const;
    /// Returns what a word that looks like an option, and is none of this command, is called by:
    /// "there is no option --raet; did you mean --rate?".
    [[nodiscard]] std::string no_such_option(const std::string& word) const;
    /// --help is not the command's own.
    void drop_help();
    [[nodiscard]] bool is_parsed() const;

protected:
    CLI::App* app_;
};

/// The command line of a program.
class CommandLine : public Command {
public:
    explicit CommandLine(const std::string& description, const std::string& name = "");
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    void set_version_flag(const std::string& version);
    /// Exactly one sub-command must be given.
    void require_subcommand();

    /// Returns the exit status if the program must end, because of a fault or after --help. Has
    /// printed why.
    [[nodiscard]] std::optional<int> parse(int argc, const char* const* argv);
    [[nodiscard]] std::optional<int> parse(std::vector<std::string> words);

private:
    std::unique_ptr<CLI::App> root_;
};

}  // namespace ulc::tools
