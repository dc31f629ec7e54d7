# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_lanelect_global_optspecs
    string join \n h/help V/version
end

function __fish_lanelect_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_lanelect_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_lanelect_using_subcommand
    set -l cmd (__fish_lanelect_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c lanelect -n "__fish_lanelect_needs_command" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_needs_command" -s V -l version -d 'Print version'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "run" -d 'Runs the daemon in the foreground'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "check-config" -d 'Validates a config file and prints the effective configuration'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "status" -d 'Shows the role of this node, the leader, the term and the members'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "doctor" -d 'Looks for what is wrong on this host and with its group, and says what mends it'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "disk-sync" -d 'Measures a sync in DIRECTORY; started by `lanelect doctor` alone'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "is-leader" -d 'Exits with status 0 if this node leads'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "watch" -d 'Prints a line for each change of leader or role, until interrupted'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "exec" -d 'Runs COMMAND while this node leads'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "exec-guard" -d 'Kills the command of `lanelect exec` in time; started by `lanelect exec` alone'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "yield" -d 'Hands the leadership of this node over to another node'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "maintenance" -d 'Takes this node out of service, or puts it back'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "hook-runner" -d 'Runs hook, checks and fence for a daemon without privileges'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "post-stop" -d 'Cleans up after a daemon that died as leader'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "announce" -d 'Announces to the LAN that this host has an address now'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "keygen" -d 'Prints a new random key for key_file'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "demo" -d 'Shows an election and a failover on this machine'
complete -c lanelect -n "__fish_lanelect_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l config -d 'Config file; without one, only flags and defaults apply' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l group -d 'Name of the election group, 1 to 64 bytes without blanks and \'/\'; datagrams of other groups are ignored [default: default]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l node-id -d 'Name of this node, unique in the group, 1 to 64 bytes without blanks [default: the hostname]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l priority -d 'Priority of this node, 0 to 255; the highest leads, and tie_break decides between equal ones [default: 100]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l tie-break -d 'Order of nodes with the same priority, the same rule on every node. "lowest-id": the lowest node_id in byte order leads; "spread": a hash of group and node_id decides, so several groups spread over the hosts [default: lowest-id]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l candidate -d 'Whether this node may lead; false: it only follows, and votes if it is one of the voters [default: true]' -r -f -a "true\t''
false\t''"
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l interface -d 'Network interface to send and receive on; repeat the flag for each, or separate them by commas, at most 16. A datagram that arrives on several counts once [default: the interface of the kernel\'s route]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l multicast -d 'Multicast address and port, the same on every node: 239.255.76.69:7669 or [ff02::4c45]:7669; "none", or with another port "none:7670": peers alone carry the datagrams [default: 239.255.76.69:7669]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l peers -d 'Hosts that each datagram is sent to by unicast too, as addresses or names, with a port or without; repeat the flag for each, or separate them by commas, at most 64. Give every host the same list: this host may be in it, and then sends from that address. Of unicast, only datagrams from these hosts count, and those that come by a router only with a key [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l heartbeat-interval -d 'Time between two declarations of the leader, 10ms to 1m, the same on every node; the next four durations scale with it unless they are set [default: 350ms]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l leader-alive-threshold -d 'Silence after which a leader that answers no probe has failed; at least 1.1 x heartbeat_interval, in quorum mode 1.5 x, at most 1h. Lower fails over faster, higher tolerates longer stalls [default: 2.5 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l leader-election-duration -d 'Longest time that an election collects proposals, 1ms to 1h [default: heartbeat_interval / 4]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l startup-grace-period -d 'Longest time that a starting node waits for a stable membership, 1ms to 1h [default: 15 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l membership-sample-interval -d 'Time between two samples of the membership at start, 1ms to 1h; two equal samples end the wait [default: 1 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l preset -d 'Preset for the five durations above. "fabric": 5s heartbeats, 10s alive threshold, 5s election, 15s grace, 1s sample; keys that are set override it [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l static-role -d 'Role without any election, "leader" or "follower" (available mode) [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l mode -d 'Election mode, the same on every node. "available": a leader in every partition of the network; "quorum": never two leaders, and none without a majority of the voters [default: available]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l voters -d 'The node_id of every voter, the same on every node; repeat the flag for each, or separate them by commas, at most 31. Nodes that are not voters only follow [required in quorum mode]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l min-candidates -d 'Minimum number of visible candidates, this node included, 1 to 1000; with fewer, no node leads (available mode) [default: 1]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l preempt -d 'Whether this node takes over from a leader that ranks lower [default: false]' -r -f -a "true\t''
false\t''"
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l preempt-delay -d 'Delay before this node takes over from a leader that ranks lower, 0s to 1h [default: 0s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l hook -d 'Command line for /bin/sh -c, run when the leadership of this node changes [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l hook-timeout -d 'Time limit for one hook run, 100ms to 1h. When it expires, the hook\'s process group gets SIGTERM, and SIGKILL 5 s later [default: 30s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l hook-socket -d 'Socket of `lanelect hook-runner`, which then runs hook, checks and fence in place of the daemon [default: none, the daemon runs them]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l refresh-interval -d 'Time after which a leader runs the hook again, for `reaffirmed` with the reason `refresh`, 1s to 24h; also run when this host loses an address. So the hook puts back what others removed [default: none, no refresh]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l on-elected-failure -d 'Reaction to a hook that fails for `elected`. "resign": this node hands over and is out of service for failure_holdoff; "ignore": it continues to lead [default: resign]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l failure-holdoff -d 'Hold-off time after the hook failed for `elected`, check_leader failed, or `yield --failed` was run, 1ms to 24h, in which this node is not eligible to lead; doubles with every failure in a row, up to 1h if it is shorter [default: 60s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l demote-grace -d 'Time reserved for the hook for `demoted` after the leader has lost its majority, 0s to 10m. No other node leads earlier, and a failover takes that much longer (quorum mode) [default: 5s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l fence -d 'Command line for /bin/sh -c that cuts this host off by force, run if the hook for `demoted` does not succeed within demote_grace (quorum mode) [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l check -d 'Health check in every role: command line for /bin/sh -c. If it fails check_fall times in a row, this node is not eligible to lead [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l check-leader -d 'Health check of a leader whose hook for `elected` has ended: command line for /bin/sh -c. If it fails check_fall times in a row, the leader hands over and is out of service for failure_holdoff. Failures before the first success count only after hook_timeout [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l check-interval -d 'Time from the start of a check to the next start of the same check, 100ms to 1h; the next run waits for a run in progress [default: 1s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l check-timeout -d 'Time limit for one check run, 100ms to 1h. When it expires, the check has failed, and its process group gets SIGTERM, and SIGKILL 5 s later [default: 1s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l check-fall -d 'Number of failed checks in a row after which this node hands over and is not eligible to lead, 1 to 1000 [default: 3]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l check-rise -d 'Number of passed checks in a row after which this node is eligible again, 1 to 1000; those of check_leader end the doubling of failure_holdoff [default: 2]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l key-file -d 'File of shared keys from `lanelect keygen`, one a line. A node signs with the first and accepts all. Only the owner may have access [default: none, datagrams are not authenticated]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l key-mode -d 'How the keys are used. accept: sends without a key, accepts both; prefer: sends with the key, accepts both; require: sends with the key, accepts no datagram without one. Go from one to the next on every node to add keys, or to remove them, while the group runs [default: require]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l state-dir -d 'Directory for the state that survives restarts: term, vote and maintenance [default: /var/lib/lanelect]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l socket -d 'Path of the control socket [default: /run/lanelect/GROUP.sock]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -l socket-group -d 'Unix group whose members may command the daemon; everyone may query it [default: none, only root and the daemon\'s user may command it]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand run" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l group -d 'Name of the election group, 1 to 64 bytes without blanks and \'/\'; datagrams of other groups are ignored [default: default]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l node-id -d 'Name of this node, unique in the group, 1 to 64 bytes without blanks [default: the hostname]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l priority -d 'Priority of this node, 0 to 255; the highest leads, and tie_break decides between equal ones [default: 100]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l tie-break -d 'Order of nodes with the same priority, the same rule on every node. "lowest-id": the lowest node_id in byte order leads; "spread": a hash of group and node_id decides, so several groups spread over the hosts [default: lowest-id]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l candidate -d 'Whether this node may lead; false: it only follows, and votes if it is one of the voters [default: true]' -r -f -a "true\t''
false\t''"
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l interface -d 'Network interface to send and receive on; repeat the flag for each, or separate them by commas, at most 16. A datagram that arrives on several counts once [default: the interface of the kernel\'s route]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l multicast -d 'Multicast address and port, the same on every node: 239.255.76.69:7669 or [ff02::4c45]:7669; "none", or with another port "none:7670": peers alone carry the datagrams [default: 239.255.76.69:7669]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l peers -d 'Hosts that each datagram is sent to by unicast too, as addresses or names, with a port or without; repeat the flag for each, or separate them by commas, at most 64. Give every host the same list: this host may be in it, and then sends from that address. Of unicast, only datagrams from these hosts count, and those that come by a router only with a key [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l heartbeat-interval -d 'Time between two declarations of the leader, 10ms to 1m, the same on every node; the next four durations scale with it unless they are set [default: 350ms]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l leader-alive-threshold -d 'Silence after which a leader that answers no probe has failed; at least 1.1 x heartbeat_interval, in quorum mode 1.5 x, at most 1h. Lower fails over faster, higher tolerates longer stalls [default: 2.5 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l leader-election-duration -d 'Longest time that an election collects proposals, 1ms to 1h [default: heartbeat_interval / 4]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l startup-grace-period -d 'Longest time that a starting node waits for a stable membership, 1ms to 1h [default: 15 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l membership-sample-interval -d 'Time between two samples of the membership at start, 1ms to 1h; two equal samples end the wait [default: 1 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l preset -d 'Preset for the five durations above. "fabric": 5s heartbeats, 10s alive threshold, 5s election, 15s grace, 1s sample; keys that are set override it [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l static-role -d 'Role without any election, "leader" or "follower" (available mode) [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l mode -d 'Election mode, the same on every node. "available": a leader in every partition of the network; "quorum": never two leaders, and none without a majority of the voters [default: available]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l voters -d 'The node_id of every voter, the same on every node; repeat the flag for each, or separate them by commas, at most 31. Nodes that are not voters only follow [required in quorum mode]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l min-candidates -d 'Minimum number of visible candidates, this node included, 1 to 1000; with fewer, no node leads (available mode) [default: 1]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l preempt -d 'Whether this node takes over from a leader that ranks lower [default: false]' -r -f -a "true\t''
false\t''"
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l preempt-delay -d 'Delay before this node takes over from a leader that ranks lower, 0s to 1h [default: 0s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l hook -d 'Command line for /bin/sh -c, run when the leadership of this node changes [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l hook-timeout -d 'Time limit for one hook run, 100ms to 1h. When it expires, the hook\'s process group gets SIGTERM, and SIGKILL 5 s later [default: 30s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l hook-socket -d 'Socket of `lanelect hook-runner`, which then runs hook, checks and fence in place of the daemon [default: none, the daemon runs them]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l refresh-interval -d 'Time after which a leader runs the hook again, for `reaffirmed` with the reason `refresh`, 1s to 24h; also run when this host loses an address. So the hook puts back what others removed [default: none, no refresh]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l on-elected-failure -d 'Reaction to a hook that fails for `elected`. "resign": this node hands over and is out of service for failure_holdoff; "ignore": it continues to lead [default: resign]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l failure-holdoff -d 'Hold-off time after the hook failed for `elected`, check_leader failed, or `yield --failed` was run, 1ms to 24h, in which this node is not eligible to lead; doubles with every failure in a row, up to 1h if it is shorter [default: 60s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l demote-grace -d 'Time reserved for the hook for `demoted` after the leader has lost its majority, 0s to 10m. No other node leads earlier, and a failover takes that much longer (quorum mode) [default: 5s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l fence -d 'Command line for /bin/sh -c that cuts this host off by force, run if the hook for `demoted` does not succeed within demote_grace (quorum mode) [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l check -d 'Health check in every role: command line for /bin/sh -c. If it fails check_fall times in a row, this node is not eligible to lead [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l check-leader -d 'Health check of a leader whose hook for `elected` has ended: command line for /bin/sh -c. If it fails check_fall times in a row, the leader hands over and is out of service for failure_holdoff. Failures before the first success count only after hook_timeout [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l check-interval -d 'Time from the start of a check to the next start of the same check, 100ms to 1h; the next run waits for a run in progress [default: 1s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l check-timeout -d 'Time limit for one check run, 100ms to 1h. When it expires, the check has failed, and its process group gets SIGTERM, and SIGKILL 5 s later [default: 1s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l check-fall -d 'Number of failed checks in a row after which this node hands over and is not eligible to lead, 1 to 1000 [default: 3]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l check-rise -d 'Number of passed checks in a row after which this node is eligible again, 1 to 1000; those of check_leader end the doubling of failure_holdoff [default: 2]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l key-file -d 'File of shared keys from `lanelect keygen`, one a line. A node signs with the first and accepts all. Only the owner may have access [default: none, datagrams are not authenticated]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l key-mode -d 'How the keys are used. accept: sends without a key, accepts both; prefer: sends with the key, accepts both; require: sends with the key, accepts no datagram without one. Go from one to the next on every node to add keys, or to remove them, while the group runs [default: require]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l state-dir -d 'Directory for the state that survives restarts: term, vote and maintenance [default: /var/lib/lanelect]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l socket -d 'Path of the control socket [default: /run/lanelect/GROUP.sock]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -l socket-group -d 'Unix group whose members may command the daemon; everyone may query it [default: none, only root and the daemon\'s user may command it]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -s q -l quiet -d 'Print errors and warnings only'
complete -c lanelect -n "__fish_lanelect_using_subcommand check-config" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand status" -l socket -d 'Control socket of the daemon' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand status" -l group -d 'Group of the daemon, whose socket is /run/lanelect/NAME.sock; to be named if this host has several' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand status" -l json -d 'Print JSON instead of text'
complete -c lanelect -n "__fish_lanelect_using_subcommand status" -l watch -d 'Show the status every second and at each transition, until interrupted'
complete -c lanelect -n "__fish_lanelect_using_subcommand status" -l check -d 'Print one line for a monitoring system, whose states are the exit statuses'
complete -c lanelect -n "__fish_lanelect_using_subcommand status" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand doctor" -l config -d 'Config file, if it is not the one of the daemon; without --group and --socket it also says which daemon to look at' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand doctor" -l socket -d 'Control socket of the daemon' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand doctor" -l group -d 'Group of the daemon, whose socket is /run/lanelect/NAME.sock; to be named if this host has several' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand doctor" -l json -d 'Print JSON instead of text'
complete -c lanelect -n "__fish_lanelect_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand disk-sync" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand is-leader" -l socket -d 'Control socket of the daemon' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand is-leader" -l group -d 'Group of the daemon, whose socket is /run/lanelect/NAME.sock' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand is-leader" -l ready -d 'Exit with 0 only if this node leads and its hook has succeeded for elected'
complete -c lanelect -n "__fish_lanelect_using_subcommand is-leader" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand watch" -l socket -d 'Control socket of the daemon' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand watch" -l group -d 'Group of the daemon, whose socket is /run/lanelect/NAME.sock' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand watch" -l json -d 'Print JSON instead of text'
complete -c lanelect -n "__fish_lanelect_using_subcommand watch" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand exec" -l socket -d 'Control socket of the daemon' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand exec" -l group -d 'Group of the daemon, whose socket is /run/lanelect/NAME.sock' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand exec" -l restart -d 'Run COMMAND again in the next leadership, when this one is lost'
complete -c lanelect -n "__fish_lanelect_using_subcommand exec" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand exec-guard" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand yield" -l to -d 'Member that takes over, instead of the best eligible one' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand yield" -l wait -d 'Return only when that is complete, or fail after DURATION' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand yield" -l socket -d 'Control socket of the daemon' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand yield" -l group -d 'Group of the daemon, whose socket is /run/lanelect/NAME.sock' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand yield" -l failed -d 'Reports that the service of the leader has failed on this host: if another node can take over, this one is not eligible for failure_holdoff'
complete -c lanelect -n "__fish_lanelect_using_subcommand yield" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand maintenance" -l wait -d 'Return only when that is complete, or fail after DURATION' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand maintenance" -l socket -d 'Control socket of the daemon' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand maintenance" -l group -d 'Group of the daemon, whose socket is /run/lanelect/NAME.sock' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand maintenance" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lanelect -n "__fish_lanelect_using_subcommand hook-runner" -l config -d 'Config file of the daemon; only root and the hook-runner\'s user may write it' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand hook-runner" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l config -d 'Config file; without one, only flags and defaults apply' -r -F
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l group -d 'Name of the election group, 1 to 64 bytes without blanks and \'/\'; datagrams of other groups are ignored [default: default]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l node-id -d 'Name of this node, unique in the group, 1 to 64 bytes without blanks [default: the hostname]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l priority -d 'Priority of this node, 0 to 255; the highest leads, and tie_break decides between equal ones [default: 100]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l tie-break -d 'Order of nodes with the same priority, the same rule on every node. "lowest-id": the lowest node_id in byte order leads; "spread": a hash of group and node_id decides, so several groups spread over the hosts [default: lowest-id]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l candidate -d 'Whether this node may lead; false: it only follows, and votes if it is one of the voters [default: true]' -r -f -a "true\t''
false\t''"
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l interface -d 'Network interface to send and receive on; repeat the flag for each, or separate them by commas, at most 16. A datagram that arrives on several counts once [default: the interface of the kernel\'s route]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l multicast -d 'Multicast address and port, the same on every node: 239.255.76.69:7669 or [ff02::4c45]:7669; "none", or with another port "none:7670": peers alone carry the datagrams [default: 239.255.76.69:7669]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l peers -d 'Hosts that each datagram is sent to by unicast too, as addresses or names, with a port or without; repeat the flag for each, or separate them by commas, at most 64. Give every host the same list: this host may be in it, and then sends from that address. Of unicast, only datagrams from these hosts count, and those that come by a router only with a key [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l heartbeat-interval -d 'Time between two declarations of the leader, 10ms to 1m, the same on every node; the next four durations scale with it unless they are set [default: 350ms]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l leader-alive-threshold -d 'Silence after which a leader that answers no probe has failed; at least 1.1 x heartbeat_interval, in quorum mode 1.5 x, at most 1h. Lower fails over faster, higher tolerates longer stalls [default: 2.5 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l leader-election-duration -d 'Longest time that an election collects proposals, 1ms to 1h [default: heartbeat_interval / 4]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l startup-grace-period -d 'Longest time that a starting node waits for a stable membership, 1ms to 1h [default: 15 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l membership-sample-interval -d 'Time between two samples of the membership at start, 1ms to 1h; two equal samples end the wait [default: 1 x heartbeat_interval]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l preset -d 'Preset for the five durations above. "fabric": 5s heartbeats, 10s alive threshold, 5s election, 15s grace, 1s sample; keys that are set override it [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l static-role -d 'Role without any election, "leader" or "follower" (available mode) [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l mode -d 'Election mode, the same on every node. "available": a leader in every partition of the network; "quorum": never two leaders, and none without a majority of the voters [default: available]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l voters -d 'The node_id of every voter, the same on every node; repeat the flag for each, or separate them by commas, at most 31. Nodes that are not voters only follow [required in quorum mode]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l min-candidates -d 'Minimum number of visible candidates, this node included, 1 to 1000; with fewer, no node leads (available mode) [default: 1]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l preempt -d 'Whether this node takes over from a leader that ranks lower [default: false]' -r -f -a "true\t''
false\t''"
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l preempt-delay -d 'Delay before this node takes over from a leader that ranks lower, 0s to 1h [default: 0s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l hook -d 'Command line for /bin/sh -c, run when the leadership of this node changes [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l hook-timeout -d 'Time limit for one hook run, 100ms to 1h. When it expires, the hook\'s process group gets SIGTERM, and SIGKILL 5 s later [default: 30s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l hook-socket -d 'Socket of `lanelect hook-runner`, which then runs hook, checks and fence in place of the daemon [default: none, the daemon runs them]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l refresh-interval -d 'Time after which a leader runs the hook again, for `reaffirmed` with the reason `refresh`, 1s to 24h; also run when this host loses an address. So the hook puts back what others removed [default: none, no refresh]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l on-elected-failure -d 'Reaction to a hook that fails for `elected`. "resign": this node hands over and is out of service for failure_holdoff; "ignore": it continues to lead [default: resign]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l failure-holdoff -d 'Hold-off time after the hook failed for `elected`, check_leader failed, or `yield --failed` was run, 1ms to 24h, in which this node is not eligible to lead; doubles with every failure in a row, up to 1h if it is shorter [default: 60s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l demote-grace -d 'Time reserved for the hook for `demoted` after the leader has lost its majority, 0s to 10m. No other node leads earlier, and a failover takes that much longer (quorum mode) [default: 5s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l fence -d 'Command line for /bin/sh -c that cuts this host off by force, run if the hook for `demoted` does not succeed within demote_grace (quorum mode) [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l check -d 'Health check in every role: command line for /bin/sh -c. If it fails check_fall times in a row, this node is not eligible to lead [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l check-leader -d 'Health check of a leader whose hook for `elected` has ended: command line for /bin/sh -c. If it fails check_fall times in a row, the leader hands over and is out of service for failure_holdoff. Failures before the first success count only after hook_timeout [default: none]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l check-interval -d 'Time from the start of a check to the next start of the same check, 100ms to 1h; the next run waits for a run in progress [default: 1s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l check-timeout -d 'Time limit for one check run, 100ms to 1h. When it expires, the check has failed, and its process group gets SIGTERM, and SIGKILL 5 s later [default: 1s]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l check-fall -d 'Number of failed checks in a row after which this node hands over and is not eligible to lead, 1 to 1000 [default: 3]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l check-rise -d 'Number of passed checks in a row after which this node is eligible again, 1 to 1000; those of check_leader end the doubling of failure_holdoff [default: 2]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l key-file -d 'File of shared keys from `lanelect keygen`, one a line. A node signs with the first and accepts all. Only the owner may have access [default: none, datagrams are not authenticated]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l key-mode -d 'How the keys are used. accept: sends without a key, accepts both; prefer: sends with the key, accepts both; require: sends with the key, accepts no datagram without one. Go from one to the next on every node to add keys, or to remove them, while the group runs [default: require]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l state-dir -d 'Directory for the state that survives restarts: term, vote and maintenance [default: /var/lib/lanelect]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l socket -d 'Path of the control socket [default: /run/lanelect/GROUP.sock]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -l socket-group -d 'Unix group whose members may command the daemon; everyone may query it [default: none, only root and the daemon\'s user may command it]' -r
complete -c lanelect -n "__fish_lanelect_using_subcommand post-stop" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand announce" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand keygen" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand demo" -s h -l help -d 'Print help'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "run" -d 'Runs the daemon in the foreground'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "check-config" -d 'Validates a config file and prints the effective configuration'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "status" -d 'Shows the role of this node, the leader, the term and the members'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "doctor" -d 'Looks for what is wrong on this host and with its group, and says what mends it'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "disk-sync" -d 'Measures a sync in DIRECTORY; started by `lanelect doctor` alone'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "is-leader" -d 'Exits with status 0 if this node leads'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "watch" -d 'Prints a line for each change of leader or role, until interrupted'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "exec" -d 'Runs COMMAND while this node leads'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "exec-guard" -d 'Kills the command of `lanelect exec` in time; started by `lanelect exec` alone'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "yield" -d 'Hands the leadership of this node over to another node'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "maintenance" -d 'Takes this node out of service, or puts it back'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "hook-runner" -d 'Runs hook, checks and fence for a daemon without privileges'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "post-stop" -d 'Cleans up after a daemon that died as leader'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "announce" -d 'Announces to the LAN that this host has an address now'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "keygen" -d 'Prints a new random key for key_file'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "demo" -d 'Shows an election and a failover on this machine'
complete -c lanelect -n "__fish_lanelect_using_subcommand help; and not __fish_seen_subcommand_from run check-config status doctor disk-sync is-leader watch exec exec-guard yield maintenance hook-runner post-stop announce keygen demo help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
