#!/bin/sh
# What the stand-ins for the vendors' commands share. Their state is in the directory $CLOUD.

fail() {
    echo "$1" >&2
    exit 254
}

# Notes the call, and fails or hangs if the test wants that: begin OPERATION
begin() {
    echo "$1" >>"$CLOUD/calls"
    if [ -e "$CLOUD/hang-$1" ]; then
        # As the real commands do: another process does the work.
        /bin/sleep 120 &
        echo $! >"$CLOUD/hanging"
        wait
    fi
    if [ -e "$CLOUD/fail-$1" ]; then
        fail "$(cat "$CLOUD/fail-$1")"
    fi
    if [ -e "$CLOUD/fail-once-$1" ]; then
        message=$(cat "$CLOUD/fail-once-$1")
        rm "$CLOUD/fail-once-$1"
        fail "$message"
    fi
    # Another leader is faster.
    if [ -e "$CLOUD/overtake-$1" ]; then
        mv "$CLOUD/overtake-$1" "$CLOUD/state"
    fi
}

# The state as a look shows it. With the file `lag` some looks after a change show what was before.
shown() {
    left=$(cat "$CLOUD/lag" 2>/dev/null || echo 0)
    if [ -e "$CLOUD/before" ] && [ "$left" -gt 0 ]; then
        echo $((left - 1)) >"$CLOUD/lag"
        cat "$CLOUD/before"
    else
        cat "$CLOUD/state"
    fi
}

# Takes the new state from standard input.
becomes() {
    cat >"$CLOUD/new"
    cp "$CLOUD/state" "$CLOUD/before"
    mv "$CLOUD/new" "$CLOUD/state"
}
