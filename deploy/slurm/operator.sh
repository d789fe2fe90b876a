#!/bin/sh
# What the controller needs in Slurm: the right to drain and resume nodes, for the user that it runs as.
# Run once, as a Slurm administrator. Without slurmdbd there are no operators: run the controller as SlurmUser then.
set -eu
user="${1:-corral-controller}"
account="${2:-root}"
sacctmgr --immediate add user name="$user" account="$account" adminlevel=Operator
sacctmgr --noheader --parsable2 show user "$user" format=user,adminlevel
