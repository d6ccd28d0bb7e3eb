// megactl completion: scripts for the shells. Job names are asked of the coordinator at the moment
// of completing.
#include <map>
#include <memory>

#include "absl/strings/str_join.h"
#include "cli/commands/command.h"

namespace mega::cli {
namespace {

// What a coordinator answers is never run or expanded, whatever is in a name; and it is the one
// that the line names that is asked. Bash cuts COMP_WORDS at every colon, so that addresses are in
// pieces there: options are read from the line itself.
constexpr char kBash[] = R"script(# megactl completion bash > /etc/bash_completion.d/megactl
_megactl_ask() {
  local name
  while IFS= read -r name; do
    [[ $name == "$word"* ]] && COMPREPLY+=("$name")
  done < <(megactl "${to[@]}" "$@" -o name 2>/dev/null | sort -u)
}
_megactl() {
  local word=${COMP_WORDS[COMP_CWORD]} previous='' command='' i
  local -a words=() to=()
  read -rd '' -a words <<< "${COMP_LINE:0:COMP_POINT}|"
  local -i last=$((${#words[@]} - 1))
  for ((i = 1; i < last; i++)); do
    case ${words[i]} in
      --coordinator|-n|--namespace)
        ((i + 1 < last)) && to+=("${words[i]}" "${words[i + 1]}")
        ((++i)) ;;
      --coordinator=*|--namespace=*) to+=("${words[i]}") ;;
      --color) ((++i)) ;;
      -*) ;;
      *) [[ $command ]] || command=${words[i]} ;;
    esac
  done
  previous=${words[last - 1]}
  COMPREPLY=()
  case $previous in
    -o|--output) COMPREPLY=($(compgen -W 'table wide json yaml name' -- "$word")); return ;;
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$word")); return ;;
    --coordinator|-n|--namespace) return ;;
  esac
  case $command in
    '') COMPREPLY=($(compgen -W '@COMMANDS@' -- "$word")) ;;
    run|submit|plan) COMPREPLY=($(compgen -f -- "$word")) ;;
    get|describe|goodput|logs|events|steps|cancel|pause|resume|restart|scale|wait|list)
      _megactl_ask get ;;
    checkpoints)
      if [[ $previous == checkpoints ]]; then COMPREPLY=($(compgen -W 'list describe verify save pin unpin delete' -- "$word"))
      else _megactl_ask get; fi ;;
    cordon|uncordon|drain) _megactl_ask nodes ;;
    namespaces) COMPREPLY=($(compgen -W 'list set delete' -- "$word")) ;;
    queue|doctor) ;;
    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _megactl megactl
)script";

constexpr char kZsh[] = R"script(#compdef megactl
# megactl completion zsh > "${fpath[1]}/_megactl"
_megactl_ask() {
  local -a names
  names=(${(uf)"$(megactl $to $@ -o name 2>/dev/null)"})
  compadd -a names
}
_megactl() {
  local command='' i
  local -a to
  for ((i = 2; i < CURRENT; i++)); do
    case ${words[i]} in
      --coordinator|-n|--namespace)
        ((i + 1 < CURRENT)) && to+=(${words[i]} ${words[i+1]})
        ((++i)) ;;
      --coordinator=*|--namespace=*) to+=(${words[i]}) ;;
      --color) ((++i)) ;;
      -*) ;;
      *) [[ -n $command ]] || command=${words[i]} ;;
    esac
  done
  case ${words[CURRENT-1]} in
    -o|--output) compadd table wide json yaml name; return ;;
    --color) compadd auto always never; return ;;
    --coordinator|-n|--namespace) return ;;
  esac
  case $command in
    '') compadd @COMMANDS@ ;;
    get|describe|goodput|logs|events|steps|cancel|pause|resume|restart|scale|wait|checkpoints)
      [[ ${words[CURRENT-1]} == checkpoints ]] && { compadd list describe verify save pin unpin delete; return }
      _megactl_ask get ;;
    cordon|uncordon|drain) _megactl_ask nodes ;;
    namespaces) compadd list set delete ;;
    queue|doctor) ;;
    completion) compadd bash zsh fish ;;
    *) _files ;;
  esac
}
_megactl "$@"
)script";

constexpr char kFish[] =
    R"script(# megactl completion fish > ~/.config/fish/completions/megactl.fish
function __megactl_ask
  set -l words (commandline -opc)
  set -l to
  for i in (seq 2 (count $words))
    switch $words[$i]
      case --coordinator -n --namespace
        test $i -lt (count $words); and set -a to $words[$i] $words[(math $i + 1)]
      case '--coordinator=*' '--namespace=*'
        set -a to $words[$i]
    end
  end
  megactl $to $argv -o name 2>/dev/null
end
complete -c megactl -f -n '__fish_use_subcommand' -a '@COMMANDS@'
complete -c megactl -f -n '__fish_seen_subcommand_from get describe goodput logs events steps cancel pause resume restart scale wait list' -a '(__megactl_ask get)'
complete -c megactl -f -n '__fish_seen_subcommand_from checkpoints' -a 'list describe verify save pin unpin delete'
complete -c megactl -f -n '__fish_seen_subcommand_from verify save pin unpin' -a '(__megactl_ask get)'
complete -c megactl -f -n '__fish_seen_subcommand_from cordon uncordon drain' -a '(__megactl_ask nodes)'
complete -c megactl -f -n '__fish_seen_subcommand_from namespaces' -a 'list set delete'
complete -c megactl -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
complete -c megactl -F -n '__fish_seen_subcommand_from run submit plan generate data'
complete -c megactl -s o -l output -x -a 'table wide json yaml name'
complete -c megactl -l color -x -a 'auto always never'
)script";

std::string Script(Command program, const std::string& shell_name) {
  static const std::map<std::string, const char*> kScripts = {
      {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  const std::string commands = absl::StrJoin(program.CommandNames(), " ");
  std::string script = kScripts.at(shell_name);
  constexpr std::string_view kMark = "@COMMANDS@";
  script.replace(script.find(kMark), kMark.size(), commands);
  return script;
}

}  // namespace

void AddCompletion(Command program) {
  Command command = program.AddCommand("completion", "Print the completion script of a shell",
                                       "source <(megactl completion bash)");
  auto name = std::make_shared<std::string>();
  command.AddOption("shell", *name, "bash, zsh or fish").Required().OneOf({"bash", "zsh", "fish"});
  command.OnRun([program, name] {
    PrintStdout(Script(program, *name));
    return kExitOk;
  });
}

}  // namespace mega::cli
