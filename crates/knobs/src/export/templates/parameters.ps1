[CmdletBinding(SupportsShouldProcess = $true)]
param(
    [switch] $Undo,
    [switch] $Force,
    [string] $Backup
)
$BackupName = 'fullpipe-before.xml'
