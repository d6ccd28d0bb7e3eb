// megactl completion: scripts for the shells. Job names are asked of the coordinator at the moment
// of completing.
#include <map>
#include <memory>

#include "absl/strings/str_join.h"
#include "cli/commands/command.h"

namespace mega::cli {
namespace {

constexpr char kBash[] = R"script(# megactl completion bash > /etc/bash_completion.d/megactl
_megactl() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --coordinator|-n|--namespace|--color) ((i++)) ;;
      -*) ;;
      *) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  case $previous in
    -o|--output) COMPREPLY=($(compgen -W 'table wide json yaml name' -- "$word")); return ;;
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$word")); return ;;
  esac
  case $command in
    '') COMPREPLY=($(compgen -W '@COMMANDS@' -- "$word")) ;;
    run|submit|plan) COMPREPLY=($(compgen -f -- "$word")) ;;
    get|describe|goodput|logs|events|steps|cancel|pause|resume|restart|scale|wait|list)
      COMPREPLY=($(compgen -W "$(megactl get -o name 2>/dev/null)" -- "$word")) ;;
    checkpoints)
      if [[ $previous == checkpoints ]]; then COMPREPLY=($(compgen -W 'list describe verify save pin unpin delete' -- "$word"))
      else COMPREPLY=($(compgen -W "$(megactl get -o name 2>/dev/null)" -- "$word")); fi ;;
    cordon|uncordon|drain)
      COMPREPLY=($(compgen -W "$(megactl nodes -o name 2>/dev/null)" -- "$word")) ;;
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
_megactl() {
  local -a jobs
  if (( CURRENT == 2 )); then
    compadd @COMMANDS@
    return
  fi
  case ${words[CURRENT-1]} in
    -o|--output) compadd table wide json yaml name; return ;;
    --color) compadd auto always never; return ;;
  esac
  case ${words[2]} in
    get|describe|goodput|logs|events|steps|cancel|pause|resume|restart|scale|wait|checkpoints)
      [[ ${words[2]} == checkpoints && $CURRENT -eq 3 ]] && { compadd list describe verify save pin unpin delete; return }
      jobs=(${(f)"$(megactl get -o name 2>/dev/null)"})
      compadd -a jobs ;;
    cordon|uncordon|drain)
      jobs=(${(f)"$(megactl nodes -o name 2>/dev/null)"})
      compadd -a jobs ;;
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
complete -c megactl -f -n '__fish_use_subcommand' -a '@COMMANDS@'
complete -c megactl -f -n '__fish_seen_subcommand_from get describe goodput logs events steps cancel pause resume restart scale wait list' -a '(megactl get -o name 2>/dev/null)'
complete -c megactl -f -n '__fish_seen_subcommand_from checkpoints' -a 'list describe verify save pin unpin delete'
complete -c megactl -f -n '__fish_seen_subcommand_from verify save pin unpin' -a '(megactl get -o name 2>/dev/null)'
complete -c megactl -f -n '__fish_seen_subcommand_from cordon uncordon drain' -a '(megactl nodes -o name 2>/dev/null)'
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
